package apiserver

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// asking is a server that refuses, and tells who asked; it counts its connections, and drops the
// first of them.
func asking(t *testing.T, drop int64, auth tls.ClientAuthType) (s *httptest.Server, ca string, opened, closed *atomic.Int64, who chan string) {
	t.Helper()
	opened, closed, who = &atomic.Int64{}, &atomic.Int64{}, make(chan string, 9)
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := ""
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		who <- r.Proto + " " + name
		refuse(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: auth}
	s.Config.ConnState = func(c net.Conn, st http.ConnState) {
		switch st {
		case http.StateNew:
			if opened.Add(1) <= drop {
				_ = c.Close()
			}
		case http.StateClosed:
			closed.Add(1)
		default:
		}
	}
	return s, startTLS(t, s), opened, closed, who
}

// A connection that began without the certificate is that of the first request with it; where
// it did not come about there is another one.
func TestHandshake(t *testing.T) {
	cert, key := makePair(t, pkix.Name{CommonName: "system:node:n1"}, "n1")
	for name, c := range map[string]struct {
		drop int64
		auth tls.ClientAuthType
		want string
		open int64
	}{
		"asks for it":         {0, tls.RequestClientCert, "HTTP/2.0 system:node:n1", 1},
		"asks nobody":         {0, tls.NoClientCert, "HTTP/2.0 ", 1},
		"lost the connection": {1, tls.RequestClientCert, "HTTP/2.0 system:node:n1", 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, ca, opened, _, who := asking(t, c.drop, c.auth)
			a := Access{Server: s.URL, CA: []byte(ca), Connections: &Connections{}}
			h := BeginHandshake(t.Context(), a)
			defer h.Close()
			for opened.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			a.Certificate, a.Key, a.Handshake = cert, key, h
			client, err := NewClient(a)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := client.GetNode(t.Context(), "n1"); err == nil {
					t.Error("it is not refused")
				}
				if got := <-who; got != c.want {
					t.Errorf("the server saw %q, want %q", got, c.want)
				}
			}
			client.HandOn(a.Connections)
			if len(a.Connections.idle) != 1 || opened.Load() != c.open {
				t.Errorf("%d connections handed on, %d opened", len(a.Connections.idle), opened.Load())
			}
			a.Connections.handOn(nil)
		})
	}
}

// A later connection to a server that takes it and is mute costs one try and no more, and the
// error is one of the handshake.
func TestHandshakeWithTheMute(t *testing.T) {
	t.Parallel()
	l := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	_, ca := selfSigned(t)
	cert, key := makePair(t, pkix.Name{CommonName: "system:node:n1"}, "n1")
	a := Access{Server: "https://" + l.Addr().String(), CA: []byte(ca)}
	h := BeginHandshake(t.Context(), a)
	h.Close()
	a.Certificate, a.Key = cert, key
	cfg, err := a.tls()
	if err != nil {
		t.Fatal(err)
	}
	transport := a.transport(l.Addr().String(), cfg)
	h.lend(transport, cfg)
	ctx, way := traceConnection(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Server, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	answer, err := transport.RoundTrip(r)
	if err == nil {
		_ = answer.Body.Close()
		t.Fatal("the mute has answered")
	}
	if took := time.Since(start); took < tryTimeout || way.layer != LayerTLS {
		t.Errorf("after %s, in %s: %v", took, way.layer, err)
	}
}

// One that nobody takes does not stay.
func TestHandshakeEnds(t *testing.T) {
	for name, auth := range map[string]tls.ClientAuthType{"asks for it": tls.RequestClientCert, "asks nobody": tls.NoClientCert} {
		t.Run(name, func(t *testing.T) {
			s, ca, opened, closed, _ := asking(t, 0, auth)
			h := BeginHandshake(t.Context(), Access{Server: s.URL, CA: []byte(ca)})
			for opened.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			h.Close()
			for end := time.Now().Add(10 * time.Second); closed.Load() == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the connection is still open")
				}
			}
		})
	}
	if h := BeginHandshake(t.Context(), Access{Server: "https://127.0.0.1:1", CA: []byte("text")}); h != nil {
		t.Error("it begins without a CA")
	}
	(*Handshake)(nil).Close()
	s, ca, _, _, _ := asking(t, 1<<60, tls.NoClientCert)
	h := BeginHandshake(t.Context(), Access{Server: s.URL, CA: []byte(ca)})
	if c := h.take(t.Context(), tls.Certificate{}); c != nil {
		t.Error("a connection that was dropped is there")
	}
	h.Close()
}
