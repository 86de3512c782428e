package apiserver

import (
	"crypto/tls"
	"maps"
	"net/http"
	"sync"
)

// Connections hands on connections to API servers: to who asks the same server next,
// trusts the same CA and shows the same certificate, or none either. A probe's is taken
// over by the request for the certificate, and the node's own by each that follows. The zero value
// is empty, nil hands on nothing.
type Connections struct {
	mu   sync.Mutex
	idle map[connectionKey]*http.Transport
	// at are the addresses at which hosts were found that name servers need not know.
	at map[string]string
}

// connectionKey is what two users of a connection must have in common.
type connectionKey struct{ host, ca, certificate string }

// keyOf is the key of connections with settings.
func keyOf(host string, ca []byte, cfg *tls.Config) connectionKey {
	k := connectionKey{host: host, ca: string(ca)}
	if len(cfg.Certificates) > 0 {
		k.certificate = string(cfg.Certificates[0].Leaf.Raw)
	}
	return k
}

// give takes a transport over whose connection is idle.
func (c *Connections) give(key connectionKey, t *http.Transport) {
	if c == nil {
		t.CloseIdleConnections()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = map[connectionKey]*http.Transport{}
	}
	if old := c.idle[key]; old != nil {
		old.CloseIdleConnections()
	}
	c.idle[key] = t
}

// take returns a transport that was given, to one user; nil if there is none.
func (c *Connections) take(key connectionKey) *http.Transport {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.idle[key]
	delete(c.idle, key)
	return t
}

// found keeps at which address a host was found.
func (c *Connections) found(host, address string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = map[string]string{}
	}
	c.at[host] = address
}

// address is where a host was found; "" where its name is all that is known.
func (c *Connections) address(host string) string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[host]
}

// handOn gives all that there is to others.
func (c *Connections) handOn(to *Connections) {
	c.mu.Lock()
	idle := c.idle
	c.idle = nil
	at := maps.Clone(c.at)
	c.mu.Unlock()
	for key, t := range idle {
		to.give(key, t)
	}
	for host, address := range at {
		to.found(host, address)
	}
}
