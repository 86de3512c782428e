package apiserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
)

// Handshake is a connection to an API server that begins before the certificate is there that it
// shows, so that the server has said by then all that it says of itself. nil is none.
type Handshake struct {
	certificate chan tls.Certificate
	// opened has the connection when the server has the certificate, and is closed then.
	opened chan *tls.Conn
	end    context.CancelFunc
}

// BeginHandshake begins a connection for a, but for its certificate, within ctx. It returns nil
// where none can be made, or a proxy of the environment is on the way.
func BeginHandshake(ctx context.Context, a Access) *Handshake {
	u, err := url.Parse(a.Server)
	if err != nil {
		return nil
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); proxy != nil || err != nil {
		return nil
	}
	cfg, err := a.tls()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &Handshake{make(chan tls.Certificate, 1), make(chan *tls.Conn, 1), cancel}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		select {
		case c := <-h.certificate:
			return &c, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	dial := a.transport(u.Host, cfg).DialContext
	go func() {
		defer close(h.opened)
		c, err := dialTLS(ctx, dial, cfg, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
		if err != nil {
			return
		}
		if shake(ctx, c) == nil {
			h.opened <- c
		}
	}()
	return h
}

// Close ends a connection that nobody has taken.
func (h *Handshake) Close() {
	if h == nil {
		return
	}
	h.end()
	go func() {
		if c := <-h.opened; c != nil {
			_ = c.Close()
		}
	}()
}

// take shows the certificate, and is the connection; nil where there is none, or it was taken.
func (h *Handshake) take(ctx context.Context, c tls.Certificate) *tls.Conn {
	select {
	case h.certificate <- c:
	default: // shown before
	}
	select {
	case conn := <-h.opened:
		return conn
	case <-ctx.Done():
		return nil
	}
}

// lend has a transport with a certificate take the connection as its first one.
func (h *Handshake) lend(t *http.Transport, cfg *tls.Config) {
	if h == nil || len(cfg.Certificates) == 0 {
		return
	}
	t.DialTLSContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		if c := h.take(ctx, cfg.Certificates[0]); c != nil {
			return c, nil
		}
		c, err := dialTLS(ctx, t.DialContext, cfg, address)
		if err != nil {
			return nil, err
		}
		return c, shake(ctx, c)
	}
}

// shake ends the handshake of a connection in the time of one try, which a transport leaves to
// who dials for it.
func shake(ctx context.Context, c *tls.Conn) error {
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.TLSHandshakeStart != nil {
		trace.TLSHandshakeStart()
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	err := c.HandshakeContext(ctx)
	if err != nil {
		_ = c.Close()
	}
	return err
}

// dialTLS opens a connection as an http.Transport does, up to the handshake.
func dialTLS(ctx context.Context, d dial, cfg *tls.Config, address string) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := d(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	cfg = cfg.Clone()
	cfg.ServerName, cfg.NextProtos = host, []string{"h2", "http/1.1"}
	return tls.Client(conn, cfg), nil
}
