package vm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// fakeAgent is a guest agent with some noise of an earlier client in its
// output. A command that is not in answers stays unanswered.
func fakeAgent(t *testing.T, answers map[string]string) *VM {
	t.Helper()
	v := &VM{changed: make(chan struct{}), cfg: Config{Dir: t.TempDir()}}
	l, err := net.Listen("unix", filepath.Join(v.cfg.Dir, "agent.sock"))
	ok(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serveAgent(conn, answers)
		}
	}()
	return v
}

func serveAgent(conn net.Conn, answers map[string]string) {
	defer conn.Close()
	fmt.Fprint(conn, `{"return": {"pid": 99}}`+"\n"+`{"return": 12`+"\xff"+`{"return": 12}`+"\n")
	for in := bufio.NewReader(conn); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var c struct {
			Execute   string `json:"execute"`
			Arguments struct {
				ID int64 `json:"id"`
			} `json:"arguments"`
		}
		if json.Unmarshal(bytes.TrimLeft(line, "\xff"), &c) != nil {
			return
		}
		if c.Execute == "guest-sync-delimited" {
			fmt.Fprintf(conn, "\xff{\"return\": %d}\n", c.Arguments.ID)
		} else if a, ok := answers[c.Execute]; ok {
			fmt.Fprintln(conn, a)
		}
	}
}

func TestExec(t *testing.T) {
	v := fakeAgent(t, map[string]string{
		"guest-exec":        `{"return": {"pid": 7}}`,
		"guest-exec-status": `{"return": {"exited": true, "exitcode": 3, "out-data": "b3V0Cg==", "err-data": "ZXJy", "err-truncated": true}}`,
	})
	r, err := v.Exec(t.Context(), nil, "true")
	ok(t, err)
	if r.ExitCode != 3 || string(r.Stdout) != "out\n" || string(r.Stderr) != "err" || !r.Truncated {
		t.Errorf("result %+v", r)
	}
	if _, err := v.Output(t.Context(), "true"); err == nil || err.Error() != "true: exit code 3, signal 0: out\nerr" {
		t.Errorf("error %v", err)
	}
}

func TestAgentErrors(t *testing.T) {
	v := fakeAgent(t, map[string]string{"guest-exec": `{"error": {"class": "GenericError", "desc": "no such file"}}`})
	if _, err := v.Exec(t.Context(), nil, "nothing"); err == nil ||
		err.Error() != "exec nothing: guest agent: guest-exec: GenericError: no such file" {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := v.ReadFile(ctx, "/silent"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// TestRebootWithoutAnswer: the guest goes down before it says how the command
// ended.
func TestRebootWithoutAnswer(t *testing.T) {
	v := fakeAgent(t, map[string]string{
		"guest-exec": `{"return": {"pid": 7}}`, "guest-exec-status": "cut off", "guest-ping": `{"return": {}}`,
	})
	v.qemu = &running{agentOpen: true}
	time.AfterFunc(20*time.Millisecond, func() { v.update(func() { v.resets++ }) })
	ok(t, v.Reboot(t.Context()))
	v.qemu = nil
	if err := v.Reboot(t.Context()); !errors.Is(err, ErrOff) {
		t.Errorf("error %v", err)
	}
}

func TestRebootRefused(t *testing.T) {
	v := fakeAgent(t, map[string]string{
		"guest-exec": `{"return": {"pid": 7}}`, "guest-exec-status": `{"return": {"exited": true, "exitcode": 1, "err-data": "bm8="}}`,
	})
	if err := v.Reboot(t.Context()); err == nil || err.Error() != "reboot: exit code 1: no" {
		t.Errorf("error %v", err)
	}
}
