package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Exchange is what one request without a credential tells of an API server.
type Exchange struct {
	// Host is the server's name or address, with port.
	Host string
	// Took is how long it was until the answer began.
	Took time.Duration
	// Status is that of HTTP.
	Status int
	// Date is the server's clock in the answer, to the second; zero if it says none.
	// At is this machine's when that came.
	Date, At time.Time
	// Chain is what the server showed of itself, its own certificate first.
	Chain []*x509.Certificate
}

// Anonymous asks an API server for its version, once, and whoever answers: nothing that
// is secret is sent, and its certificate is for the caller to check (Exchange.Trusted).
// It also has the certificate where the server ended the exchange after it. The error
// is a *Error.
func Anonymous(ctx context.Context, server string) (Exchange, error) {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return Exchange{}, &Error{Layer: LayerDNS, Host: server, Cause: err, Permanent: true}
	}
	x := Exchange{Host: net.JoinHostPort(u.Hostname(), portOf(u))}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	ctx, way := traceConnection(ctx)
	asked := &resolvers{}
	t := newTransport(&tls.Config{InsecureSkipVerify: true, ServerName: u.Hostname(), MinVersion: tls.VersionTLS12,
		VerifyConnection: func(s tls.ConnectionState) error { x.Chain = s.PeerCertificates; return nil }}, asked.resolver())
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+x.Host+"/version", http.NoBody)
	if err != nil {
		return x, way.blame(x.Host, err)
	}
	start := time.Now()
	resp, err := (&http.Client{Transport: t, CheckRedirect: noRedirects}).Do(req)
	if err != nil {
		e := way.blame(x.Host, err)
		e.Resolvers = asked.list()
		return x, e
	}
	defer resp.Body.Close()
	x.At, x.Took, x.Status = time.Now(), time.Since(start), resp.StatusCode
	x.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	return x, nil
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return "443"
}

// Trusted checks what a server showed by a CA (PEM; the machine's own roots if empty) at
// a time. The error is of package x509, or ErrNoCertificate.
func (x Exchange) Trusted(ca []byte, at time.Time) error {
	pool, err := roots(ca)
	if err != nil {
		return err
	}
	if len(x.Chain) == 0 {
		return ErrNoCertificate
	}
	between := x509.NewCertPool()
	for _, c := range x.Chain[1:] {
		between.AddCert(c)
	}
	name, _, err := net.SplitHostPort(x.Host)
	if err != nil {
		return err
	}
	_, err = x.Chain[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, DNSName: name, CurrentTime: at})
	return err
}
