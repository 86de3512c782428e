package vm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// WaitAgent returns when the guest's agent has opened its port: udev has run
// and basic services start. It is not a sign that the boot is complete.
func (v *VM) WaitAgent(ctx context.Context) error {
	err := v.wait(ctx, "the guest agent", func() (bool, error) {
		if v.qemu == nil {
			return false, v.offReason()
		}
		return v.qemu.agentOpen, nil
	})
	if err != nil {
		return err
	}
	return v.agent(ctx, "guest-ping", nil, nil)
}

// agent runs one command of the guest agent's protocol. Each command has its
// own connection: what a reboot left unanswered can't reach a later one.
func (v *VM) agent(ctx context.Context, command string, args, out any) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", v.path("agent.sock"))
	if err != nil {
		return fmt.Errorf("guest agent: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	a := agentConn{conn, bufio.NewReader(conn)}
	if err = a.sync(); err == nil {
		err = a.call(command, args, out)
	}
	if err != nil {
		return fmt.Errorf("guest agent: %w", errors.Join(err, ctx.Err()))
	}
	return nil
}

type agentConn struct {
	net.Conn
	in *bufio.Reader
}

// sync throws away what an earlier client left in the guest's parser (the
// leading 0xFF) and in the answers (all before the 0xFF that comes back).
func (a agentConn) sync() error {
	id := rand.Int64N(1 << 50)
	if _, err := a.Write([]byte{0xFF}); err != nil {
		return err
	}
	if err := a.send("guest-sync-delimited", map[string]int64{"id": id}); err != nil {
		return err
	}
	for {
		if _, err := a.in.ReadBytes(0xFF); err != nil {
			return fmt.Errorf("no answer: %w", err)
		}
		var got int64
		if err := a.receive(&got); err == nil && got == id {
			return nil
		} else if isNetError(err) {
			return fmt.Errorf("no answer: %w", err)
		}
	}
}

func isNetError(err error) bool {
	var n net.Error
	return errors.As(err, &n)
}

func (a agentConn) call(command string, args, out any) error {
	err := a.send(command, args)
	if err == nil {
		err = a.receive(out)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

func (a agentConn) send(command string, args any) error {
	msg := map[string]any{"execute": command}
	if args != nil {
		msg["arguments"] = args
	}
	return json.NewEncoder(a).Encode(msg)
}

func (a agentConn) receive(out any) error {
	line, err := a.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("answer %q: %w", line, err)
	}
	switch {
	case r.Error != nil:
		return fmt.Errorf("%s: %s", r.Error.Class, r.Error.Desc)
	case out == nil:
		return nil
	}
	return json.Unmarshal(r.Return, out)
}
