package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAnswers(t *testing.T) {
	c := &Counts{}
	c.Add(Applied, 2)
	c.Add(Applied, 1)
	var unwell error
	s := &Server{Counts: c, Ready: func() error { return unwell }}
	get := func(h http.Handler, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, text := get(s.health(), "/healthz"); code != 200 || text != "ok\n" {
		t.Error(code, text)
	}
	unwell = errors.New("stuck")
	if code, _ := get(s.health(), "/healthz"); code != 200 {
		t.Error(code)
	}
	if code, text := get(s.health(), "/readyz"); code != 503 || text != "stuck\n" {
		t.Error(code, text)
	}
	if code, _ := get(s.health(), "/metrics"); code != 404 {
		t.Error("metrics where health is")
	}
	_, text := get(s.metrics(), "/metrics")
	for _, want := range []string{"# TYPE " + Applied + " counter\n" + Applied + " 3\n", Failed + " 0\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	for name := range c.values {
		if help[name] == "" {
			t.Errorf("%s is not explained", name)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestServes asks a server that runs, beside a port that somebody else has.
func TestServes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := &Server{Counts: &Counts{}, Ready: func() error { return nil }, Health: freePort(t),
		Metrics: taken.Addr().(*net.TCPAddr).Port, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for {
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", s.Health))
		if err != nil {
			continue // it does not listen yet
		}
		body, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if string(body) != "ok\n" {
			t.Errorf("%s", body)
		}
		break
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
