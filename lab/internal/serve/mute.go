package serve

import (
	"errors"
	"net"
	"sync"
)

// Mute accepts connections and never says a word, so that a TLS handshake
// hangs. Closing the returned Mute ends it.
type Mute struct {
	l     net.Listener
	done  chan struct{}
	mu    sync.Mutex
	conns []net.Conn
}

// StartMute takes over l.
func StartMute(l net.Listener) *Mute {
	m := &Mute{l: l, done: make(chan struct{})}
	go m.accept()
	return m
}

func (m *Mute) accept() {
	defer close(m.done)
	for {
		c, err := m.l.Accept()
		if err != nil {
			return
		}
		m.mu.Lock()
		m.conns = append(m.conns, c)
		m.mu.Unlock()
	}
}

// Accepted is how many connections there have been.
func (m *Mute) Accepted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.conns)
}

// Close cuts all connections.
func (m *Mute) Close() error {
	err := m.l.Close()
	<-m.done
	for _, c := range m.conns {
		err = errors.Join(err, c.Close())
	}
	return err
}
