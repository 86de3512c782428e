package apiserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"sync/atomic"
)

// authSession is what a client shows to the server until it is renewed: connections
// made with one certificate.
type authSession struct {
	credential http.RoundTripper
	transport  *http.Transport
	key        connectionKey
	ended      context.Context
	end        context.CancelFunc
}

// authSessions is a round tripper whose credential can be replaced while it is used.
type authSessions struct{ current atomic.Pointer[authSession] }

// Renew shows another credential, or trusts another CA, from the next request
// on. The server stays the one that the client was made for. Requests on their
// way end as they began; what is watched or followed is asked for again.
func (c *Client) Renew(a Access) error {
	cfg, err := a.tls()
	if err != nil {
		return &Error{Layer: LayerTLS, Host: c.host, Cause: err, Permanent: true}
	}
	s := &authSession{}
	s.key = keyOf(c.host, a.CA, cfg)
	if s.transport = a.Connections.take(s.key); s.transport == nil {
		s.transport = a.transport(c.host, cfg)
		a.Handshake.lend(s.transport, cfg)
	}
	if s.credential, err = a.credential(s.transport); err != nil {
		return &Error{Layer: LayerTLS, Host: c.host, Cause: err, Permanent: true}
	}
	s.ended, s.end = context.WithCancel(context.Background())
	if old := c.sessions.current.Swap(s); old != nil {
		old.end()
		old.transport.CloseIdleConnections()
	}
	return nil
}

// transport is a new one to a host.
func (a Access) transport(host string, cfg *tls.Config) *http.Transport {
	t := newTransport(cfg, nil)
	if address := a.Connections.address(host); address != "" {
		t.DialContext = at(t.DialContext, host, address)
	}
	t.HTTP2.SendPingTimeout = cmp.Or(a.Silence, t.HTTP2.SendPingTimeout)
	return t
}

// close ends what is watched, and leaves the connection to others.
func (s *authSessions) close(to *Connections) {
	now := s.current.Load()
	now.end()
	to.give(now.key, now.transport)
}

// RoundTrip implements http.RoundTripper.
func (s *authSessions) RoundTrip(r *http.Request) (*http.Response, error) {
	now := s.current.Load()
	if r.URL.Query().Get("watch") == "" {
		return now.credential.RoundTrip(r)
	}
	return now.stream(r)
}

// stream is a request whose answer ends with the session at the latest.
func (s *authSession) stream(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.ended, cancel)
	end := func() { stop(); cancel() }
	answer, err := s.credential.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	answer.Body = &streamed{answer.Body, s.ended, end}
	return answer, nil
}

// streamed is the answer to a watch. The end of its session is the end of the
// answer and no error.
type streamed struct {
	io.ReadCloser
	ended context.Context
	end   func()
}

// Read implements io.Reader.
func (b *streamed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.ended.Err() != nil {
		err = io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (b *streamed) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
