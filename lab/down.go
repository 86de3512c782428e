package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/lab/internal/machine"
	"github.com/berth-dev/berth/lab/internal/netns"
	"github.com/berth-dev/berth/lab/internal/proc"
	"github.com/berth-dev/berth/lab/internal/state"
	"github.com/berth-dev/berth/lab/internal/sysctl"
	"github.com/berth-dev/berth/lab/internal/vm"
	"golang.org/x/sys/unix"
)

// sysctlFile holds the host's kernel settings from before the first lab.
var sysctlFile = filepath.Join(state.Dir, "sysctl.json")

// Close takes the lab down.
func (l *Lab) Close() error {
	err := Down(context.Background(), l.Name)
	if l.keeper != nil {
		l.keeper.Close()
	}
	return err
}

// Down takes a lab down, whoever started it and whatever state it is in:
// processes, mounts, control groups, network, disks; with the last lab, the
// host's kernel settings come back. No lab of that name is no error.
func Down(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	s, err := state.Load(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = errors.Join(stopProcesses(ctx, s), removeNodes(ctx, s), netns.Namespace(s.Namespace).Delete(ctx))
	if err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	if err := os.RemoveAll(s.Data()); err != nil {
		return fmt.Errorf("remove lab's disks: %w", err)
	}
	if err := state.Remove(name); err != nil {
		return err
	}
	return restoreHost()
}

// stopProcesses kills what the lab runs on the host. SIGKILL, since nothing is
// kept; the keeper first, so that it does not do the same.
func stopProcesses(ctx context.Context, s *state.State) error {
	var errs []error
	for _, p := range s.Processes {
		if p.PID != os.Getpid() {
			errs = append(errs, p.Signal(unix.SIGKILL))
		}
	}
	for _, p := range s.Processes {
		if p.PID != os.Getpid() {
			errs = append(errs, p.Wait(ctx))
		}
	}
	return errors.Join(errs...)
}

func removeNodes(ctx context.Context, s *state.State) error {
	var errs []error
	for _, n := range s.Nodes {
		spec := machineSpec(s, n)
		errs = append(errs, spec.Kill(ctx))
	}
	for _, v := range s.VMs {
		errs = append(errs, vm.Reap(v.Dir))
	}
	return errors.Join(errs...)
}

func machineSpec(s *state.State, n state.Node) machine.Spec {
	return machine.Spec{Namespace: netns.Namespace(s.Namespace), Machine: n.Machine, Dir: n.Dir, Cgroups: n.Cgroups, CgroupV2: n.CgroupV2}
}

func restoreHost() error {
	names, err := state.List()
	if err != nil || len(names) > 0 {
		return err
	}
	_, err = sysctl.Restore(sysctlFile)
	return err
}

// Clean takes down every lab whose owner is gone.
func Clean(ctx context.Context) error {
	names, err := state.List()
	if err != nil {
		return err
	}
	for _, n := range names {
		s, err := state.Load(n)
		if err != nil {
			return err
		}
		if s.Stale() && !keeperAlive(s) {
			if err := Down(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// keeperAlive reports whether the lab's keeper is about to do the same.
func keeperAlive(s *state.State) bool {
	for _, p := range s.Processes {
		if p.Name == "keeper" && p.Alive() {
			return waitGone(p)
		}
	}
	return false
}

// waitGone gives a keeper some time and reports whether it finished its work.
func waitGone(p proc.ID) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return p.Wait(ctx) == nil
}

// List names the labs of this machine.
func List() ([]string, error) { return state.List() }
