package apiserver

import (
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// The first client with a token goes on over the connection of the probe, and the first with
// a certificate over that of the one before that showed it; the next one, one with another
// certificate, one of another CA and one after a probe that failed make connections of their own.
func TestTheProbesConnectionIsHandedOn(t *testing.T) {
	var opened atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(refuse))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			opened.Add(1)
		}
	}
	ca := startTLS(t, s)
	shared := &Connections{}
	probe := func(want bool, ca string) {
		t.Helper()
		err := Prober{Connections: shared}.Probe(t.Context(), checkOf(s.Listener.Addr(), ca, time.Minute))
		if (err == nil) != want {
			t.Fatal(err)
		}
	}
	ask := func(a Access) {
		t.Helper()
		a.Server, a.Connections = s.URL, shared
		c, err := NewClient(a)
		if err != nil {
			t.Fatal(err)
		}
		if a.Certificate == nil {
			defer c.Close()
		} else {
			defer c.HandOn(shared)
		}
		if _, err := c.GetNode(t.Context(), "n1"); err == nil {
			t.Error("it is not refused")
		}
	}
	cert, key := makePair(t, pkix.Name{CommonName: "system:node:n1"}, "n1")
	cert2, key2 := makePair(t, pkix.Name{CommonName: "system:node:n2"}, "n2")
	for _, step := range []struct {
		name string
		do   func()
		want int64
	}{
		{"probe", func() { probe(true, ca) }, 1},
		{"with a token", func() { ask(Access{CA: []byte(ca), Token: "t"}) }, 0},
		{"a second one", func() { ask(Access{CA: []byte(ca), Token: "t"}) }, 1},
		{"probe again", func() { probe(true, ca) }, 1},
		{"with a certificate", func() { ask(Access{CA: []byte(ca), Certificate: cert, Key: key}) }, 1},
		{"with it again", func() { ask(Access{CA: []byte(ca), Certificate: cert, Key: key}) }, 0},
		{"with another one", func() { ask(Access{CA: []byte(ca), Certificate: cert2, Key: key2}) }, 1},
		{"another CA", func() { ask(Access{CA: []byte(ca + "\n"), Token: "t"}) }, 1},
		{"and the right one", func() { ask(Access{CA: []byte(ca), Token: "t"}) }, 0},
	} {
		before := opened.Load()
		step.do()
		if got := opened.Load() - before; got != step.want {
			t.Errorf("%s: %d connections, want %d", step.name, got, step.want)
		}
	}
	_, other := selfSigned(t)
	before := len(shared.idle)
	probe(false, other)
	if len(shared.idle) != before {
		t.Error("a probe that failed hands something on")
	}
}
