package apiserver

import (
	"cmp"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	if err := (Prober{}).Probe(t.Context(), checkOf(s.Listener.Addr(), ca, time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Logf("took %s", time.Since(start))
}

func TestProbeNamesTheLayer(t *testing.T) {
	good, ca := serve(t, http.HandlerFunc(refuse))
	other, otherCA := selfSigned(t)
	mute := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	plain := listen(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); _ = c.Close() })
	closed, _ := reserved(t)
	byName := checkOf(good.Listener.Addr(), ca, 0)
	byName.Host = "no-such-host.invalid"
	for _, tc := range []struct {
		name      string
		check     *desired.Check
		layer     Layer
		permanent bool
		least     int
	}{
		{"refused", checkOf(closed, ca, 0), LayerTCP, false, 2},
		{"other CA", checkOf(good.Listener.Addr(), otherCA, time.Minute), LayerTLS, true, 3},
		{"other name", checkOf(other.Listener.Addr(), otherCA, time.Minute), LayerTLS, true, 3},
		{"mute", checkOf(mute.Addr(), ca, 0), LayerTLS, false, 1},
		{"plain", checkOf(plain.Addr(), ca, time.Minute), LayerTLS, true, 3},
		{"no CA in CA", checkOf(good.Listener.Addr(), "text", time.Minute), LayerTLS, true, 0},
		{"no name", byName, LayerDNS, false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var e *Error
			var err error
			for _, budget := range []time.Duration{400 * time.Millisecond, 4 * time.Second, 20 * time.Second} { // a busy machine needs more
				check := *tc.check
				check.Timeout = cmp.Or(check.Timeout, budget)
				start := time.Now()
				err = (Prober{}).Probe(t.Context(), &check)
				if over := time.Since(start) - min(check.Timeout, 20*time.Second); over > 20*time.Second {
					t.Errorf("took %s too long", over)
				}
				var ok bool
				if e, ok = errors.AsType[*Error](err); ok && e.Layer == tc.layer && e.Permanent == tc.permanent && e.Attempts >= tc.least {
					break
				}
			}
			if e == nil || e.Layer != tc.layer || e.Permanent != tc.permanent || e.Attempts < tc.least {
				t.Errorf("got %#v (%v)", e, err)
			}
			if e != nil && (e.Hint() == "" || strings.Contains(e.Error(), "https://")) {
				t.Errorf("message %q, hint %q", e.Error(), e.Hint())
			}
		})
	}
}

func TestProbeWaitsForAServerThatComesLater(t *testing.T) {
	addr, open := reserved(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(refuse))
	ca := make(chan string, 1)
	s.Listener.Close()
	time.AfterFunc(250*time.Millisecond, func() {
		s.Listener = open()
		s.StartTLS()
	})
	// httptest always serves the same certificate.
	same, pemText := serve(t, http.HandlerFunc(refuse))
	_ = same
	ca <- pemText
	if err := (Prober{}).Probe(t.Context(), checkOf(addr, <-ca, time.Minute)); err != nil {
		t.Error(err)
	}
	s.Close()
}

func TestProbeEndsWithItsContext(t *testing.T) {
	closed, _ := reserved(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	err := (Prober{}).Probe(ctx, checkOf(closed, "", time.Minute))
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

// reserved is an address on which nobody listens before open is called, and which no
// other program can get meanwhile.
func reserved(t *testing.T) (addr net.Addr, open func() net.Listener) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "reserved")
	t.Cleanup(func() { _ = f.Close() })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}, func() net.Listener {
		if err := syscall.Listen(fd, 16); err != nil {
			panic(err)
		}
		l, err := net.FileListener(f)
		if err != nil {
			panic(err)
		}
		return l
	}
}

var _ converge.Prober = Prober{}

// A server of which the address is known is asked there, and proves that it has the name;
// no name server is asked for that, by who goes on either.
func TestProbeAtAnAddress(t *testing.T) {
	s, ca := serve(t, http.HandlerFunc(refuse))
	check := checkOf(s.Listener.Addr(), ca, 10*time.Second)
	check.Address, check.Host = check.Host, "example.com" // which the certificate of the server names
	shared := &Connections{}
	if err := (Prober{Connections: shared}).Probe(t.Context(), check); err != nil {
		t.Error(err)
	}
	cert, key := makePair(t, pkix.Name{CommonName: "system:node:n1"}, "n1")
	c, err := NewClient(Access{Server: "https://" + hostPort(check), CA: []byte(ca), Certificate: cert, Key: key, Connections: shared})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.GetNode(t.Context(), "n1"); !apierrors.IsForbidden(err) {
		t.Errorf("the server's answer is %v", err)
	}
	check.Host = "other.invalid"
	if e, ok := errors.AsType[*Error]((Prober{}).Probe(t.Context(), check)); !ok || e.Layer != LayerTLS {
		t.Errorf("another name: %v", e)
	}
}
