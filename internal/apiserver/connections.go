package apiserver

import (
	"net/http"
	"sync"
)

// Connections hands on the connection on which an API server was probed: to who asks
// the same server next, trusts the same CA and shows no certificate. The zero value is
// empty, nil hands on nothing.
type Connections struct {
	mu   sync.Mutex
	idle map[connectionKey]*http.Transport
}

// connectionKey is what two users of a connection must have in common.
type connectionKey struct{ host, ca string }

// give takes a transport over whose connection is idle.
func (c *Connections) give(host string, ca []byte, t *http.Transport) {
	if c == nil {
		t.CloseIdleConnections()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = map[connectionKey]*http.Transport{}
	}
	key := connectionKey{host, string(ca)}
	if old := c.idle[key]; old != nil {
		old.CloseIdleConnections()
	}
	c.idle[key] = t
}

// take returns a transport that was given, to one user; nil if there is none.
func (c *Connections) take(host string, ca []byte) *http.Transport {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := connectionKey{host, string(ca)}
	t := c.idle[key]
	delete(c.idle, key)
	return t
}
