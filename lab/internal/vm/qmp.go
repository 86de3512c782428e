package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Event is one asynchronous message of QEMU, such as RESET or SHUTDOWN.
type Event struct {
	Name string          `json:"event"`
	Data json.RawMessage `json:"data"`
}

type reply struct {
	Event
	ID     uint64          `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
}

// monitor speaks QMP, QEMU's control protocol, over its socket.
type monitor struct {
	conn    net.Conn
	onEvent func(Event)

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan reply
	closed  bool
}

var errMonitorClosed = errors.New("the monitor is closed: qemu is gone")

// openMonitor takes over conn. onEvent is called in order, from one goroutine.
func openMonitor(ctx context.Context, conn net.Conn, onEvent func(Event)) (*monitor, error) {
	m := &monitor{conn: conn, onEvent: onEvent, waiting: map[uint64]chan reply{}}
	go m.read()
	if err := m.do(ctx, "qmp_capabilities", nil, nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return m, nil
}

func (m *monitor) read() {
	dec := json.NewDecoder(m.conn)
	for {
		var r reply
		if dec.Decode(&r) != nil {
			m.fail()
			m.conn.Close()
			return
		}
		m.dispatch(r)
	}
}

func (m *monitor) dispatch(r reply) {
	if r.Name != "" {
		m.onEvent(r.Event)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if answer, ok := m.waiting[r.ID]; ok {
		answer <- r
		delete(m.waiting, r.ID)
	}
}

func (m *monitor) fail() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for id, answer := range m.waiting {
		close(answer)
		delete(m.waiting, id)
	}
}

// do runs one command and decodes its answer into out, unless out is nil.
func (m *monitor) do(ctx context.Context, command string, args, out any) error {
	answer, id, err := m.send(command, args)
	if err != nil {
		return fmt.Errorf("monitor %s: %w", command, err)
	}
	select {
	case <-ctx.Done():
		m.forget(id)
		return fmt.Errorf("monitor %s: %w", command, ctx.Err())
	case r, ok := <-answer:
		return r.result(command, ok, out)
	}
}

func (m *monitor) send(command string, args any) (chan reply, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, 0, errMonitorClosed
	}
	m.next++
	msg := map[string]any{"execute": command, "id": m.next}
	if args != nil {
		msg["arguments"] = args
	}
	answer := make(chan reply, 1)
	m.waiting[m.next] = answer
	return answer, m.next, json.NewEncoder(m.conn).Encode(msg)
}

func (m *monitor) forget(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, id)
}

func (r reply) result(command string, ok bool, out any) error {
	switch {
	case !ok:
		return fmt.Errorf("monitor %s: %w", command, errMonitorClosed)
	case r.Error != nil:
		return fmt.Errorf("monitor %s: %s: %s", command, r.Error.Class, r.Error.Desc)
	case out == nil:
		return nil
	}
	return json.Unmarshal(r.Return, out)
}
