package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config describes one machine. Dir must be short: the paths of the sockets in
// it may not exceed 107 bytes.
type Config struct {
	Name      string
	Dir       string // belongs to this machine alone
	Image     Image
	Seed      Seed
	MAC       string
	Tap       string // made by AddTap; empty means no network card
	Spawn     Spawner
	MemoryMiB int    // 0 means 1536
	CPUs      int    // 0 means 2
	Append    string // added to the kernel's command line
}

// VM is one machine. Its disk outlives every Boot, PowerCut and Close.
type VM struct {
	cfg Config

	mu      sync.Mutex
	qemu    *running // nil while the power is off
	changed chan struct{}
	resets  int
	saved   map[string]bool // state → whether the agent was there
	failure error           // why a reset machine did not come back
}

// running is the time from power on to power off. A guest that resets itself
// gets a new process of QEMU, see args.
type running struct {
	process   *process
	monitor   *monitor // nil between two processes
	agentOpen bool
	again     bool // the guest wants to start again
	cut       bool // nobody wants it to
	off       chan struct{}
}

type process struct {
	*os.Process
	ended chan struct{}
}

// ErrOff means that the machine has no power.
var ErrOff = errors.New("the machine is off")

// New prepares the directory: a fresh overlay, unless one is there already, and
// the seed. It does not boot.
func New(ctx context.Context, cfg Config) (*VM, error) {
	v := &VM{cfg: cfg, changed: make(chan struct{}), saved: map[string]bool{}}
	if longest := v.path("agent.sock"); len(longest) > 107 {
		return nil, fmt.Errorf("%s is too long for a socket", longest)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make machine directory: %w", err)
	}
	if err := v.SetSeed(ctx, cfg.Seed); err != nil {
		return nil, err
	}
	if _, err := os.Stat(v.path(overlayName)); err == nil {
		return v, nil
	}
	return v, v.WipeDisk(ctx)
}

// SetSeed replaces the NoCloud disk. The guest sees it at its next Boot; a new
// instance-id makes cloud-init treat the machine as new.
func (v *VM) SetSeed(ctx context.Context, s Seed) error {
	if v.Running() {
		return errors.New("the seed can only be replaced while the machine is off")
	}
	v.cfg.Seed = s
	return s.writeISO(ctx, v.path("seed.iso"))
}

// Boot turns the power on and returns once QEMU runs; the guest's kernel has
// not started yet then. See WaitAgent and WaitSerial.
func (v *VM) Boot(ctx context.Context) error { return v.boot(ctx) }

func (v *VM) boot(ctx context.Context, extra ...string) error {
	r := &running{off: make(chan struct{})}
	v.mu.Lock()
	on := v.qemu != nil
	if !on {
		v.qemu = r
	}
	v.mu.Unlock()
	if on {
		return errors.New("the machine is on already")
	}
	err := v.start(ctx, r, extra)
	if err != nil {
		v.turnOff(r)
		return err
	}
	go v.live(r)
	return nil
}

// live follows a machine through its resets until it is off.
func (v *VM) live(r *running) {
	defer v.turnOff(r)
	for {
		<-r.process.ended
		again := false
		v.update(func() {
			again = r.again && !r.cut
			r.again, r.agentOpen, r.monitor = false, false, nil
			if again {
				v.resets++
			}
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
	cmd := exec.Command("qemu-system-x86_64", append(v.args(), extra...)...)
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

// update changes the state and wakes everybody in wait.
func (v *VM) update(f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f()
	close(v.changed)
	v.changed = make(chan struct{})
}

// wait returns when done says so. done is called with the lock held.
func (v *VM) wait(ctx context.Context, what string, done func() (bool, error)) error {
	for {
		v.mu.Lock()
		ok, err := done()
		changed := v.changed
		v.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s of %s: %w", what, v.cfg.Name, ctx.Err())
		case <-changed:
		}
	}
}

func (v *VM) path(name string) string { return filepath.Join(v.cfg.Dir, name) }

func tail(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data[max(0, len(data)-2000):]))
}
