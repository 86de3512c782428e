package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http/httptrace"
	"net/url"
	"sync"
)

// connectionTrace records how far one exchange came. A dial may go on in a goroutine of
// its own, therefore the lock.
type connectionTrace struct {
	mu    sync.Mutex
	layer Layer
}

// traceConnection returns a context under which an exchange records its layers.
func traceConnection(ctx context.Context) (context.Context, *connectionTrace) {
	t := &connectionTrace{layer: LayerDNS}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart:      func(string, string) { t.reach(LayerTCP) },
		TLSHandshakeStart: func() { t.reach(LayerTLS) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err == nil {
				t.reach(LayerHTTP)
			}
		},
		GotConn: func(httptrace.GotConnInfo) { t.reach(LayerHTTP) },
	}), t
}

func (t *connectionTrace) reach(l Layer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if order(l) > order(t.layer) {
		t.layer = l
	}
}

func order(l Layer) int {
	switch l {
	case LayerTCP:
		return 1
	case LayerTLS:
		return 2
	case LayerHTTP:
		return 3
	}
	return 0
}

// blame makes an *Error of what ended the exchange. URLs and the wrappings of
// the HTTP client go: the message names the host already.
func (t *connectionTrace) blame(host string, err error) *Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &Error{Layer: t.layer, Host: host, Cause: err, Attempts: 1}
	if u, ok := errors.AsType[*url.Error](err); ok {
		e.Cause = u.Err
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		e.Layer, e.Cause = LayerDNS, dns
	}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Cause = fmt.Errorf("no answer in time: %w", e.Cause)
	}
	if distrust(err) {
		e.Layer, e.Permanent = LayerTLS, true
	}
	return e
}
