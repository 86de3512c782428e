package serve

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

func TestBlackHole(t *testing.T) {
	l, err := BlackHole().Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = net.DialTimeout("tcp", l.Addr().String(), 300*time.Millisecond)
	if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("dial: %v", err)
	}
}

func TestMute(t *testing.T) {
	m := StartMute(listen(t))
	conn, err := net.Dial("tcp", m.l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if err := m.Close(); err != nil || m.Accepted() != 1 {
		t.Errorf("%d accepted, %v", m.Accepted(), err)
	}
}

func TestStranger(t *testing.T) {
	cert, err := Stranger("127.0.0.1", "api.example")
	if err != nil {
		t.Fatal(err)
	}
	d := NewDenying(http.StatusUnauthorized, "Unauthorized")
	s := StartTLS(listen(t), cert, d)
	defer s.Close()
	resp, err := http.Get("https://" + s.Addr())
	if err == nil {
		resp.Body.Close()
	}
	if unknown := (x509.UnknownAuthorityError{}); !errors.As(err, &unknown) {
		t.Errorf("a client trusts it: %v", err)
	}
	pool := x509.NewCertPool()
	ca, err := x509.ParseCertificate(cert.Certificate[1])
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(ca)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	resp, err = client.Get("https://" + s.Addr() + "/version")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 401 || len(d.Requests()) != 1 {
		t.Errorf("status %d, log %v", resp.StatusCode, d.Requests())
	}
}
