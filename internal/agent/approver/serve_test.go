package approver

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

const file = "/etc/approver/kubeconfig"

// server answers every request with a status and remembers who sent it.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
	told chan struct{}
}

func newServer(t *testing.T) *server {
	s := &server{told: make(chan struct{}, 100)}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Header.Get("Authorization"))
		s.mu.Unlock()
		s.told <- struct{}{}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
	}))
	t.Cleanup(s.Close)
	return s
}

// pod is a machine with the files of a pod.
func (s *server) pod() *memory.Host {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	m := memory.New()
	m.Put(file, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "`+s.URL+`", certificate-authority-data: `+base64.StdEncoding.EncodeToString(ca)+`}}]
users: [{name: u, user: {tokenFile: /run/token}}]
`, 0o600)
	m.Put("/run/token", "first", 0o600)
	return m
}

func (s *server) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[len(s.seen)-1]
}

func TestServeShowsTheToken(t *testing.T) {
	s := newServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, s.pod(), file, rule, slog.New(slog.DiscardHandler)) }()
	<-s.told
	cancel()
	if err := <-done; err != nil || s.last() != "Bearer first" {
		t.Errorf("%v, %q", err, s.last())
	}
}

func TestRereadShowsAnotherToken(t *testing.T) {
	s := newServer(t)
	m := s.pod()
	k, err := kubeconfig.Read(m, file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := apiserver.NewClient(access(k))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	shown := access(k)
	for _, want := range []string{"first", "second", "second"} {
		m.Put("/run/token", want, 0o600)
		if shown, err = reread(m, file, c, shown); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, _ = c.GetNode(ctx, "n")
		cancel()
		if got := s.last(); got != "Bearer "+want {
			t.Errorf("shown %q, want %q", got, want)
		}
	}
	m.Put(file, "x: [", 0o600)
	if kept, err := reread(m, file, c, shown); err == nil || kept.Token.Reveal() != "second" {
		t.Errorf("%v, token %q", err, kept.Token.Reveal())
	}
}

func TestServeNeedsAKubeconfig(t *testing.T) {
	if err := Serve(t.Context(), memory.New(), file, rule, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
}

// TestAccessOfAKubeconfig: a program that prints tokens counts, as for any client.
func TestAccessOfAKubeconfig(t *testing.T) {
	k, err := kubeconfig.Parse([]byte(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://api"}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: kubelogin, interactiveMode: Never}}}]
`), "/")
	if err != nil {
		t.Fatal(err)
	}
	if a := access(k); a.Plugin == nil || a.Plugin.Command != "kubelogin" || a.Server != "https://api" {
		t.Errorf("%+v", a)
	}
}
