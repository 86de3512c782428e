package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/berth-dev/berth/internal/host"
)

const (
	// privateSocket is systemd's own, there from the first moment of a boot and
	// open to root; the system bus comes later.
	privateSocket = "/run/systemd/private"
	// reconnectFor is how long a systemd that executes itself anew may take to
	// answer again.
	reconnectFor = 10 * time.Second
	// reconnectPause is the time between two tries.
	reconnectPause = 5 * time.Millisecond
)

// manager is the connection to systemd: one, opened at its first use, and opened
// again after it was lost.
type manager struct {
	files tree
	mu    sync.Mutex
	conn  *connection
	news  news
	// described are of the present connection.
	described descriptions
}

var _ host.Systemd = (*manager)(nil)

// connection is a D-Bus connection, plain and with what go-systemd knows.
type connection struct {
	*systemd.Conn
	raw     *dbus.Conn
	private bool // to systemd itself, not to the bus
}

// lost says whether the other end has gone.
func (c *connection) lost() bool { return c.raw.Context().Err() != nil }

// connect returns the connection.
func (m *manager) connect(ctx context.Context) (*connection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil && !m.conn.lost() {
		return m.conn, nil
	}
	c, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	m.conn = c
	return c, nil
}

// open tries once, but after a loss for as long as systemd may need.
func (m *manager) open(ctx context.Context) (*connection, error) {
	var until time.Time
	if m.conn != nil {
		until = time.Now().Add(reconnectFor)
	}
	for {
		c, err := m.dialWithin(ctx)
		if err == nil || time.Now().After(until) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(reconnectPause):
		}
	}
}

// dialWithin is dial that gives up with ctx. ctx is not the connection's own: it
// outlives the call that opened it.
func (m *manager) dialWithin(ctx context.Context) (*connection, error) {
	type answer struct {
		c   *connection
		err error
	}
	done := make(chan answer, 1)
	go func() {
		c, err := m.dial()
		done <- answer{c, err}
	}()
	select {
	case a := <-done:
		return a.c, a.err
	case <-ctx.Done():
		go func() {
			if a := <-done; a.c != nil {
				a.c.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

func (m *manager) dial() (*connection, error) {
	var private error
	if os.Geteuid() == 0 {
		c, err := m.wrap(m.dialPrivate)
		if err == nil {
			c.private = true
			return c, nil
		}
		private = err
	}
	c, err := m.wrap(dialBus)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", host.ErrNoSystemd, errors.Join(private, err))
	}
	return c, nil
}

// wrap gives go-systemd one connection for calls and for signals: neither waits
// for the other. Each signal is seen here before go-systemd has it.
func (m *manager) wrap(open func(dbus.ConnOption) (*dbus.Conn, error)) (*connection, error) {
	raw, err := open(dbus.WithSignalHandler(newListener(m.news.hear)))
	if err != nil {
		return nil, err
	}
	c, err := systemd.NewConnection(func() (*dbus.Conn, error) { return raw, nil })
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return &connection{Conn: c, raw: raw}, nil
}

// heard implements hearer.
func (m *manager) heard(path dbus.ObjectPath) bool { return m.news.heard(path) }

// outdate implements hearer.
func (m *manager) outdate(path dbus.ObjectPath) { m.described.outdate(path) }

// dialPrivate connects to systemd itself; there is no bus to say hello to.
func (m *manager) dialPrivate(signals dbus.ConnOption) (*dbus.Conn, error) {
	c, err := net.Dial("unix", privateSocket)
	if err != nil {
		return nil, err
	}
	m.outdate("")
	raw, err := dbus.NewConn(newSignalFilter(c, m), signals)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return raw, authenticate(raw)
}

func dialBus(signals dbus.ConnOption) (*dbus.Conn, error) {
	raw, err := dbus.SystemBusPrivate(signals)
	if err != nil {
		return nil, err
	}
	if err := authenticate(raw); err != nil {
		return nil, err
	}
	if err := raw.Hello(); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return raw, nil
}

func authenticate(raw *dbus.Conn) error {
	if err := raw.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err != nil {
		return errors.Join(err, raw.Close())
	}
	return nil
}

// cut says whether a call failed because the connection was lost. A writer
// notices a moment before the reader, who says it for the whole connection.
func (c *connection) cut(err error) bool {
	if errors.Is(err, dbus.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		<-c.raw.Context().Done()
	}
	return c.lost()
}

// call runs f with the connection, and again if that was lost meanwhile: once by
// rights, and once more for a connection that the old systemd still accepted.
func call[T any](ctx context.Context, m *manager, f func(*connection) (T, error)) (T, error) {
	for again := 2; ; again-- {
		c, err := m.connect(ctx)
		if err != nil {
			var none T
			return none, err
		}
		out, err := f(c)
		if err == nil || again == 0 || !c.cut(err) {
			return out, err
		}
	}
}
