package credential

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/identity"
)

const (
	givenFile = "/etc/elsewhere/kubeconfig"
	givenText = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://elsewhere", certificate-authority: ca}}]
users: [{name: u, user: {tokenFile: token}}]
`
)

// given is a machine whose agent has a kubeconfig of somebody else's, and no name.
func given(t *testing.T) (*memory.Host, *signer, *Keeper) {
	t.Helper()
	h := memory.New()
	h.Put(givenFile, givenText, 0o600)
	h.Put("/etc/elsewhere/ca", "CA", 0o644)
	h.Put("/etc/elsewhere/token", "one\n", 0o600)
	s := &signer{t: t, h: h}
	c := &config.NodeAgent{APIServer: config.APIServer{Server: server, CAFile: caFile}, ClientConnection: config.ClientConnection{Kubeconfig: givenFile}}
	k, err := New(h, s, c, identity.AgentsGroup, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	return h, s, k
}

// TestGivenKubeconfig: its server and credential count, and no certificate is asked for.
func TestGivenKubeconfig(t *testing.T) {
	h, s, k := given(t)
	a, err := k.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := []string{a.Server, string(a.CA), a.Token.Reveal()}
	if d := cmp.Diff([]string{"https://elsewhere", "CA", "one"}, got); d != "" || len(s.asked) > 0 {
		t.Errorf("asked %d times%s", len(s.asked), d)
	}
	if _, err := h.Lstat(config.Kubeconfig); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a kubeconfig of its own: %v", err)
	}
	if err := h.Remove(givenFile); err != nil {
		t.Fatal(err)
	}
	_, err = k.Access(t.Context())
	if e, ok := errors.AsType[*exitcode.Error](err); !ok || e.Number != exitcode.Credential || !strings.Contains(err.Error(), givenFile) || !strings.Contains(e.Remedy, "KUBECONFIG") {
		t.Errorf("without it: %v", err)
	}
}

// TestGivenTokenIsReadAgain: a token that somebody renews is taken within the hour, and
// at once where the server knows the former one no more. What can't be read is told.
func TestGivenTokenIsReadAgain(t *testing.T) {
	h, s, k := given(t)
	a, err := k.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, failures := h.Now(), 0
	h.Overwrite("/etc/elsewhere/token", "two\n")
	var took []time.Duration
	k.Rotate(ctx, a, func(next apiserver.Access) error {
		took = append(took, h.Now().Sub(began).Round(time.Second))
		switch next.Token.Reveal() {
		case "two":
			h.Overwrite(givenFile, "{")
		case "three":
			cancel()
		}
		return nil
	}, func(error) {
		failures++
		h.Overwrite(givenFile, givenText)
		h.Overwrite("/etc/elsewhere/token", "three\n")
		k.Doubt()
	})
	want := []time.Duration{time.Hour, 2*time.Hour + apart/2}
	if d := cmp.Diff(want, took); d != "" || failures != 1 || len(s.asked) > 0 {
		t.Errorf("%d failures, asked %d times%s", failures, len(s.asked), d)
	}
}

// TestGivenCAIsReadAgain: another CA is taken within the hour; one that is away is the former
// one still.
func TestGivenCAIsReadAgain(t *testing.T) {
	h, _, k := given(t)
	a, err := k.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.Overwrite("/etc/elsewhere/ca", "CA two")
	var took []string
	k.Rotate(ctx, a, func(next apiserver.Access) error {
		took = append(took, string(next.CA))
		if err := h.Remove("/etc/elsewhere/ca"); err == nil {
			h.Overwrite("/etc/elsewhere/token", "two\n")
			return nil
		}
		cancel()
		return nil
	}, func(err error) { t.Error(err) })
	if d := cmp.Diff([]string{"CA two", "CA two"}, took); d != "" {
		t.Error(d)
	}
}
