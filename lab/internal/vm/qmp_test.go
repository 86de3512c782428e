package vm

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fakeQEMU answers each command with what answer returns, "" for nothing.
func fakeQEMU(t *testing.T, answer func(command string, id uint64) string) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	go func() {
		defer ours.Close()
		if _, err := ours.Write([]byte(`{"QMP": {"version": {}, "capabilities": []}}` + "\r\n")); err != nil {
			return
		}
		for dec := json.NewDecoder(ours); ; {
			var c struct {
				Execute string `json:"execute"`
				ID      uint64 `json:"id"`
			}
			if dec.Decode(&c) != nil {
				return
			}
			text := `{"return": {}, "id": ` + jsonText(c.ID) + `}`
			if c.Execute != "qmp_capabilities" {
				text = answer(c.Execute, c.ID)
			}
			if _, err := ours.Write([]byte(text)); err != nil {
				return
			}
		}
	}()
	return theirs
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestMonitor(t *testing.T) {
	events := make(chan Event, 1)
	conn := fakeQEMU(t, func(command string, id uint64) string {
		switch command {
		case "good":
			return `{"event": "RESET", "data": {"guest": true}, "timestamp": {"seconds": 3, "microseconds": 5}}` +
				`{"return": "text", "id": ` + jsonText(id) + `}`
		case "bad":
			return `{"error": {"class": "GenericError", "desc": "no"}, "id": ` + jsonText(id) + `}`
		}
		return ""
	})
	m, err := openMonitor(t.Context(), conn, func(e Event) { events <- e })
	ok(t, err)
	var said string
	ok(t, m.do(t.Context(), "good", nil, &said))
	if e := <-events; said != "text" || e.Name != "RESET" {
		t.Errorf("said %q, event %+v", said, e)
	}
	if err := m.do(t.Context(), "bad", nil, nil); err == nil || err.Error() != "monitor bad: GenericError: no" {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := m.do(ctx, "silent", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { conn.Close() })
	if err := m.do(t.Context(), "silent", nil, nil); !errors.Is(err, errMonitorClosed) {
		t.Errorf("error %v", err)
	}
	if err := m.do(t.Context(), "late", nil, nil); !errors.Is(err, errMonitorClosed) {
		t.Errorf("error %v", err)
	}
}

func TestEvents(t *testing.T) {
	v := &VM{changed: make(chan struct{})}
	r := &running{}
	v.qemu = r
	for _, test := range []struct {
		name, data   string
		agent, again bool
	}{
		{"VSERPORT_CHANGE", `{"open": true, "id": "other"}`, false, false},
		{"VSERPORT_CHANGE", `{"open": true, "id": "agent"}`, true, false},
		{"RESUME", ``, true, false},
		{"SHUTDOWN", `{"guest": true, "reason": "guest-shutdown"}`, true, false},
		{"VSERPORT_CHANGE", `{"open": false, "id": "agent"}`, false, false},
		{"SHUTDOWN", `{"guest": true, "reason": "guest-reset"}`, false, true},
	} {
		v.event(r, Event{Name: test.name, Data: json.RawMessage(test.data)})
		if r.agentOpen != test.agent || r.again != test.again {
			t.Errorf("after %s %s: agent %v, again %v", test.name, test.data, r.agentOpen, r.again)
		}
	}
}

func TestOffMachine(t *testing.T) {
	v := &VM{changed: make(chan struct{}), cfg: Config{Dir: t.TempDir()}}
	for name, err := range map[string]error{
		"power cut": v.PowerCut(), "power down": v.PowerDown(t.Context()), "agent": v.WaitAgent(t.Context()),
		"save": v.SaveState(t.Context(), "x"),
	} {
		if !errors.Is(err, ErrOff) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ok(t, v.Close())
	if _, err := New(t.Context(), Config{Dir: "/tmp/" + strings.Repeat("x", 120)}); err == nil {
		t.Error("a directory too long for sockets was accepted")
	}
}
