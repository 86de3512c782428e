package artifact

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
)

// pipes is a network in memory: a bubble of synctest has no other, since only there its
// clock stands while somebody works.
type pipes struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener
}

var network = &pipes{listeners: map[string]*pipeListener{}}

// inBubble runs a test whose time passes only while everybody waits, however loaded the
// machine is. Sites are to be made by newPipeSite.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// inBubbleNamed is inBubble for one case of several.
func inBubbleNamed(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, test) })
}

// newPipeSite is newSite for a bubble.
func newPipeSite(t *testing.T, h http.HandlerFunc) *site {
	t.Helper()
	return serveOn(t, h, network.listen)
}

// listen opens a port.
func (p *pipes) listen() net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &pipeListener{network: p, name: fmt.Sprintf("127.0.0.1:%d", 10000+len(p.listeners)), conns: make(chan net.Conn), closed: make(chan struct{})}
	p.listeners[l.name] = l
	return l
}

// dial reaches a site that listens, and the loopback's ports for all others.
func (p *pipes) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listeners[address]
	p.mu.Unlock()
	if l == nil {
		return (&net.Dialer{}).DialContext(ctx, kind, address)
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: %w", address, net.ErrClosed)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type pipeListener struct {
	network *pipes
	name    string
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr  { return l }
func (l *pipeListener) Network() string { return "tcp" }
func (l *pipeListener) String() string  { return l.name }
