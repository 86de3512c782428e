package vm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	Further   []Card // beside the one at the tap
	Spawn     Spawner
	MemoryMiB int    // 0 means 1536
	Append    string // added to the kernel's command line
}

// Card is a network card on a network of its own, which QEMU makes: there is nobody but a
// router and a DHCP server, which gives the card the 15th address.
type Card struct {
	MAC    string
	Subnet netip.Prefix // IPv4, of 24 bits
}

// Address is what the card gets by DHCP.
func (c Card) Address() netip.Addr {
	b := c.Subnet.Masked().Addr().As4()
	b[3] = 15
	return netip.AddrFrom4(b)
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
	if err := v.SetSeed(cfg.Seed); err != nil {
		return nil, err
	}
	if _, err := os.Stat(v.path(overlayName)); err == nil {
		return v, nil
	}
	return v, v.WipeDisk(ctx)
}

// SetSeed replaces the NoCloud disk. The guest sees it at its next Boot; a new
// instance-id makes cloud-init treat the machine as new.
func (v *VM) SetSeed(s Seed) error {
	if v.Running() {
		return errors.New("the seed can only be replaced while the machine is off")
	}
	v.cfg.Seed = s
	return s.writeISO(v.path("seed.iso"))
}

// Boot turns the power on and returns once QEMU runs; the guest's kernel has
// not started yet then. See WaitAgent and WaitSerial.
func (v *VM) Boot(ctx context.Context) error { return v.boot(ctx) }

// BootWith is Boot with more on the kernel's command line, for this boot only.
func (v *VM) BootWith(ctx context.Context, words string) error {
	return v.boot(ctx, "-append", kernelLine(strings.TrimSpace(v.cfg.Append+" "+words)))
}

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
