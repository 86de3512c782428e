package apiserver

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// serve starts a TLS server and returns it with its CA as PEM.
func serve(t *testing.T, h http.Handler) (*httptest.Server, string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	return s, startTLS(t, s)
}

// startTLS starts a server and returns its CA.
func startTLS(t *testing.T, s *httptest.Server) string {
	t.Helper()
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func checkOf(s net.Addr, ca string, budget time.Duration) *desired.Check {
	a := s.(*net.TCPAddr)
	return &desired.Check{Name: desired.CheckAPIServer, Host: "127.0.0.1", Port: a.Port, CA: ca, Timeout: budget}
}

func refuse(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }

func TestProbeTakesAnyAnswer(t *testing.T) {
	s, ca := serve(t, http.HandlerFunc(refuse))
	start := time.Now()
	if err := (Prober{}).Probe(t.Context(), checkOf(s.Listener.Addr(), ca, time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Logf("took %s", time.Since(start))
}

func TestProbeNamesTheStage(t *testing.T) {
	good, ca := serve(t, http.HandlerFunc(refuse))
	other, otherCA := selfSigned(t)
	mute := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	plain := listen(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); _ = c.Close() })
	closed := listen(t, nil)
	_ = closed.Close()
	byName := checkOf(good.Listener.Addr(), ca, 300*time.Millisecond)
	byName.Host = "no-such-host.invalid"
	for _, tc := range []struct {
		name      string
		check     *desired.Check
		layer     Layer
		permanent bool
		least     int
	}{
		{"refused", checkOf(closed.Addr(), ca, 400*time.Millisecond), LayerTCP, false, 2},
		{"other CA", checkOf(good.Listener.Addr(), otherCA, 10*time.Second), LayerTLS, true, 3},
		{"other name", checkOf(other.Listener.Addr(), otherCA, 10*time.Second), LayerTLS, true, 3},
		{"mute", checkOf(mute.Addr(), ca, 300*time.Millisecond), LayerTLS, false, 1},
		{"plain", checkOf(plain.Addr(), ca, 10*time.Second), LayerTLS, true, 3},
		{"no CA in CA", checkOf(good.Listener.Addr(), "text", time.Second), LayerTLS, true, 0},
		{"no name", byName, LayerDNS, false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Now()
			err := (Prober{}).Probe(t.Context(), tc.check)
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Layer != tc.layer || e.Permanent != tc.permanent || e.Attempts < tc.least {
				t.Errorf("got %#v (%v)", e, err)
			}
			if over := time.Since(start) - min(tc.check.Timeout, 2*time.Second); over > 200*time.Millisecond {
				t.Errorf("took %s too long", over)
			}
			if e != nil && (e.Hint() == "" || strings.Contains(e.Error(), "https://")) {
				t.Errorf("message %q, hint %q", e.Error(), e.Hint())
			}
		})
	}
}

func TestProbeWaitsForAServerThatComesLater(t *testing.T) {
	l := listen(t, nil)
	addr := l.Addr()
	_ = l.Close()
	s := httptest.NewUnstartedServer(http.HandlerFunc(refuse))
	ca := make(chan string, 1)
	s.Listener.Close()
	time.AfterFunc(250*time.Millisecond, func() {
		late, err := net.Listen("tcp", addr.String())
		if err != nil {
			panic(err)
		}
		s.Listener = late
		s.StartTLS()
	})
	// httptest always serves the same certificate.
	same, pemText := serve(t, http.HandlerFunc(refuse))
	_ = same
	ca <- pemText
	if err := (Prober{}).Probe(t.Context(), checkOf(addr, <-ca, 5*time.Second)); err != nil {
		t.Error(err)
	}
	s.Close()
}

func TestProbeEndsWithItsContext(t *testing.T) {
	l := listen(t, nil)
	_ = l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	err := (Prober{}).Probe(ctx, checkOf(l.Addr(), "", time.Minute))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestErrorNamesResolvers(t *testing.T) {
	e := &Error{Layer: LayerDNS, Host: "api:443", Cause: errors.New("no such host"), Attempts: 3, Elapsed: 1234 * time.Millisecond, Resolvers: []string{"168.63.129.16:53"}}
	if got, want := e.Error(), "API server api:443: resolve its name: no such host (asked 168.63.129.16:53) (3 attempts in 1.23s)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestResolversAreRecordedOnce(t *testing.T) {
	r := &resolvers{}
	for range 2 {
		c, err := r.resolver().Dial(t.Context(), "udp", "127.0.0.1:53")
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if got := r.list(); !slices.Equal(got, []string{"127.0.0.1:53"}) {
		t.Errorf("got %v", got)
	}
}

func TestDistrust(t *testing.T) {
	for _, err := range []error{x509.UnknownAuthorityError{}, x509.CertificateInvalidError{Reason: x509.Expired}, x509.HostnameError{}} {
		if !distrust(err) {
			t.Errorf("%T is not about the certificate", err)
		}
	}
	if distrust(io.EOF) {
		t.Error("EOF is about the certificate")
	}
}

// listen serves raw connections; with no handler they are left alone.
func listen(t *testing.T, handle func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if handle != nil {
				go handle(c)
			}
		}
	}()
	return l
}

var _ converge.Prober = Prober{}
