package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/lab/internal/cgroup"
	"github.com/berth-dev/berth/lab/internal/proc"
	"github.com/berth-dev/berth/lab/internal/role"
	"golang.org/x/sys/unix"
)

// poweroff is the signal that makes systemd as PID 1 power off: SIGRTMIN+4.
const poweroff = unix.Signal(38)

// Role is the name of the supervisor's role.
const Role = "machine"

// Mount puts the layers and the machine's own upper directory together at
// root. A machine that is mounted already stays so.
func (s Spec) Mount(lowers []string) error {
	for _, d := range []string{"upper", "work", "root", "containerd", "kubelet"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, d), 0o755); err != nil {
			return fmt.Errorf("create machine: %w", err)
		}
	}
	if mounted(s.root()) {
		return nil
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", strings.Join(lowers, ":"), s.Dir, s.Dir)
	if err := unix.Mount("overlay", s.root(), "overlay", 0, options); err != nil {
		return fmt.Errorf("mount root of %s: %w", s.Machine, err)
	}
	return nil
}

// Unmount takes the root apart. Nothing mounted is no error.
func (s Spec) Unmount() error {
	for mounted(s.root()) {
		if err := unix.Unmount(s.root(), unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount root of %s: %w", s.Machine, err)
		}
	}
	return nil
}

func (s Spec) root() string { return filepath.Join(s.Dir, "root") }

func mounted(dir string) bool {
	b, err := os.ReadFile("/proc/self/mounts")
	return err == nil && strings.Contains(string(b), " "+dir+" ")
}

// Start boots the machine and returns when its PID 1 runs.
func (s Spec) Start(ctx context.Context) error {
	if _, err := s.Leader(); err == nil {
		return fmt.Errorf("start %s: it is running", s.Machine)
	}
	if err := cgroup.Make(s.Cgroups); err != nil {
		return err
	}
	cmd, err := role.Command(Role, s, filepath.Join(s.Dir, "console.log"))
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start supervisor of %s: %w", s.Machine, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return s.awaitLeader(ctx, ended)
}

func (s Spec) awaitLeader(ctx context.Context, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	gone := false
	err := proc.Poll(ctx, "PID 1 of "+s.Machine, func() (bool, error) {
		select {
		case err := <-ended:
			gone = true
			cancel()
			return false, fmt.Errorf("nspawn ended: %w", err)
		default:
		}
		_, err := s.Leader()
		return err == nil, err
	})
	if gone {
		return fmt.Errorf("start %s: nspawn ended; see %s/console.log", s.Machine, s.Dir)
	}
	return err
}

// ErrStopped says that a machine does not run.
var ErrStopped = errors.New("the machine is not running")

// State reads what the supervisor wrote.
func (s Spec) State() (Running, error) {
	var r Running
	b, err := os.ReadFile(s.pidFile())
	if errors.Is(err, fs.ErrNotExist) {
		return r, ErrStopped
	}
	if err != nil {
		return r, fmt.Errorf("read machine state: %w", err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("read machine state: %w", err)
	}
	if !r.Nspawn.Alive() {
		return r, ErrStopped
	}
	return r, nil
}

// Leader is the machine's PID 1 as the host sees it.
func (s Spec) Leader() (proc.ID, error) {
	r, err := s.State()
	if err != nil {
		return proc.ID{}, err
	}
	children, err := proc.Children(r.Nspawn.PID)
	if err != nil {
		return proc.ID{}, ErrStopped
	}
	for _, pid := range children {
		if isInit(pid) {
			return proc.Of("init of "+s.Machine, pid)
		}
	}
	return proc.ID{}, ErrStopped
}

// isInit tells systemd, which runs as 1 of its own namespace, from nspawn's
// helper, which is there for a moment before.
func isInit(pid int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && strings.HasSuffix(exe, "/systemd")
}

// Stop powers the machine off and waits for nspawn to end.
func (s Spec) Stop(ctx context.Context) error {
	r, err := s.State()
	if errors.Is(err, ErrStopped) {
		return nil
	}
	leader, lerr := s.Leader()
	if err := errors.Join(err, lerr); err != nil {
		return err
	}
	if err := leader.Signal(poweroff); err != nil {
		return err
	}
	return errors.Join(r.Nspawn.Wait(ctx), r.Supervisor.Wait(ctx))
}

// Crash takes the machine's power: every process of it is gone at once.
func (s Spec) Crash(ctx context.Context) error {
	r, err := s.State()
	if errors.Is(err, ErrStopped) {
		return nil
	}
	leader, lerr := s.Leader()
	if err := errors.Join(err, lerr); err != nil {
		return err
	}
	// Not nspawn itself: its PID 1 would live on and hold the veth.
	if err := leader.Signal(unix.SIGKILL); err != nil {
		return err
	}
	return errors.Join(r.Nspawn.Wait(ctx), r.Supervisor.Wait(ctx))
}

// Link is the bridge's end of the machine's network cable.
func (s Spec) Link() string { return "vb-" + s.Machine }

// Kill removes every trace of the running machine, whatever state it is in.
func (s Spec) Kill(ctx context.Context) error {
	if err := cgroup.Kill(ctx, s.Cgroups); err != nil {
		return err
	}
	// The kernel removes it some time after the last process, and until then
	// answers for the address, which the next machine may have.
	if err := s.Namespace.DeleteLink(ctx, s.Link()); err != nil {
		return err
	}
	if err := os.Remove(s.pidFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove machine state: %w", err)
	}
	return s.Unmount()
}

// Command is a command inside the machine.
func (s Spec) Command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	leader, err := s.Leader()
	if err != nil {
		return nil, err
	}
	enter := []string{"-t", fmt.Sprint(leader.PID), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "--",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=dumb", "HOME=/root", "LANG=C.UTF-8"}
	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...), nil
}
