// Package proc names processes so that a process id that was given to another
// process meanwhile is never signalled.
package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ID is a process: its id and its start time in clock ticks since boot.
type ID struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// Of identifies a living process.
func Of(name string, pid int) (ID, error) {
	start, _, err := stat(pid)
	return ID{name, pid, start}, err
}

// Self identifies this process.
func Self() (ID, error) { return Of("self", os.Getpid()) }

// Alive reports whether the process still runs. A zombie does not.
func (p ID) Alive() bool {
	start, state, err := stat(p.PID)
	return err == nil && start == p.Start && state != "Z" && state != "X"
}

// Signal sends a signal; a process that is gone is no error.
func (p ID) Signal(s unix.Signal) error {
	if !p.Alive() {
		return nil
	}
	if err := unix.Kill(p.PID, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %s (%d): %w", p.Name, p.PID, err)
	}
	return nil
}

// Kill sends SIGKILL and waits until the process is gone.
func (p ID) Kill(ctx context.Context) error {
	if err := p.Signal(unix.SIGKILL); err != nil {
		return err
	}
	return p.Wait(ctx)
}

// Wait waits until the process is gone.
func (p ID) Wait(ctx context.Context) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil || !p.Alive() {
		if err == nil {
			unix.Close(fd)
		}
		return nil
	}
	defer unix.Close(fd)
	for p.Alive() {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for %s (%d) to end: %w", p.Name, p.PID, ctx.Err())
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, _ = unix.Poll(fds, 100)
	}
	return nil
}

// Children lists the ids of a process's children.
func Children(pid int) ([]int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil, fmt.Errorf("list children: %w", err)
	}
	var pids []int
	for _, f := range strings.Fields(string(b)) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("list children: %w", err)
		}
		pids = append(pids, n)
	}
	return pids, nil
}

// stat reads start time (field 22) and state (field 3) of proc_pid_stat(5).
func stat(pid int) (start uint64, state string, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", fmt.Errorf("read process state: %w", err)
	}
	rest := string(b[strings.LastIndexByte(string(b), ')')+1:])
	f := strings.Fields(rest)
	if len(f) < 20 {
		return 0, "", fmt.Errorf("read process state: short line")
	}
	start, err = strconv.ParseUint(f[19], 10, 64)
	return start, f[0], err
}

// Poll calls f at once and then every 20 ms until it returns true without an error or ctx
// ends. what says what is waited for.
func Poll(ctx context.Context, what string, f func() (bool, error)) error {
	var last error
	for {
		ok, err := f()
		if ok && err == nil {
			return nil
		}
		last = err
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, errors.Join(ctx.Err(), last))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
