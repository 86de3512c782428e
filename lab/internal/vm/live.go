package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// live follows a machine through its resets until it is off.
func (v *VM) live(r *running) {
	defer v.turnOff(r)
	for {
		<-r.process.ended
		again := false
		v.update(func() {
			again = r.again && !r.cut
			if again {
				v.resets++
			}
			r.again, r.agentOpen, r.monitor = false, false, nil
		})
		if !again {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := v.start(ctx, r, nil)
		cancel()
		if err != nil {
			v.update(func() { v.failure = err })
			return
		}
	}
}

func (v *VM) turnOff(r *running) {
	v.update(func() { v.qemu = nil })
	close(r.off)
}

// start runs one process of QEMU and lets its guest go.
func (v *VM) start(ctx context.Context, r *running, extra []string) error {
	for _, name := range []string{"qmp.sock", "agent.sock", "qemu.pid"} {
		if err := os.RemoveAll(v.path(name)); err != nil {
			return fmt.Errorf("remove stale file: %w", err)
		}
	}
	p, err := v.launch(extra)
	if err != nil {
		return err
	}
	cut := false
	v.update(func() { r.process, cut = p, r.cut })
	if !cut {
		err = v.attach(ctx, r)
	}
	if cut || err != nil {
		err = errors.Join(err, p.Kill())
		<-p.ended
	}
	if err != nil {
		return fmt.Errorf("start qemu: %w: %s", err, tail(v.path("qemu.log")))
	}
	return nil
}

func (v *VM) launch(extra []string) (*process, error) {
	log, err := os.Create(v.path("qemu.log"))
	if err != nil {
		return nil, fmt.Errorf("open qemu's log: %w", err)
	}
	defer log.Close()
	// Before all else that wants a core: the guest's clock goes on while it has none, and
	// one that falls behind its own timers does nothing else any more.
	cmd := exec.Command("nice", append(append([]string{"-n", "-10", "qemu-system-x86_64"}, v.args()...), extra...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := v.cfg.Spawn.start(cmd); err != nil {
		return nil, fmt.Errorf("start qemu: %w", err)
	}
	p := &process{cmd.Process, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // a killed qemu is the point of PowerCut
		close(p.ended)
	}()
	return p, nil
}

// attach connects the monitor and, since the machine waits for it, starts the
// guest: no event can be missed.
func (v *VM) attach(ctx context.Context, r *running) error {
	conn, err := dialUntil(ctx, v.path("qmp.sock"), r.process.ended)
	if err != nil {
		return err
	}
	m, err := openMonitor(ctx, conn, func(e Event) { v.event(r, e) })
	if err != nil {
		return err
	}
	v.update(func() { r.monitor = m })
	pid := strconv.Itoa(r.process.Pid)
	if err := os.WriteFile(v.path("qemu.pid"), []byte(pid), 0o600); err != nil {
		return fmt.Errorf("write pid file: %w", err)
	}
	return m.do(ctx, "cont", nil, nil)
}

// dialUntil waits for qemu to make its socket, or to die.
func dialUntil(ctx context.Context, socket string, exited <-chan struct{}) (net.Conn, error) {
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect monitor: %w: %w", ctx.Err(), err)
		case <-exited:
			return nil, errors.New("qemu ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func tail(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data[max(0, len(data)-2000):]))
}
