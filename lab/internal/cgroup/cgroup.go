// Package cgroup gives each node its own part of the control groups, in every
// hierarchy of the host, so that the nodes' slices do not mix.
package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Plan lists the directories, one per hierarchy, in which a group called name
// below this process's own groups would be. On a host with cgroup v2 only, the
// group is at the top, because a group that holds processes can't have
// children with controllers.
func Plan(name string) ([]string, error) {
	mounts, err := mounts()
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("read own control groups: %w", err)
	}
	var dirs []string
	for _, line := range strings.Split(strings.TrimSpace(string(own)), "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 {
			continue
		}
		mount, ok := mounts[f[1]]
		if !ok {
			continue
		}
		parent := f[2]
		if len(mounts) == 1 {
			parent = "/"
		}
		dirs = append(dirs, filepath.Join(mount, parent, name))
	}
	return dirs, nil
}

// mounts maps a hierarchy, named as in /proc/self/cgroup, to its mount point.
// cgroup v2 has the empty name.
func mounts() (map[string]string, error) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	defer f.Close()
	found := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if len(w) < 4 {
			continue
		}
		switch w[2] {
		case "cgroup2":
			found[""] = w[1]
		case "cgroup":
			found[v1Name(w[3])] = w[1]
		}
	}
	return found, nil
}

// v1Name keeps the controllers of a hierarchy's mount options.
func v1Name(options string) string {
	var names []string
	for _, o := range strings.Split(options, ",") {
		switch {
		case o == "rw", o == "ro", strings.HasPrefix(o, "no"), o == "relatime", o == "xattr", strings.HasPrefix(o, "release_agent"), o == "clone_children":
		default:
			names = append(names, o)
		}
	}
	return strings.Join(names, ",")
}

// Make creates the directories of Plan.
func Make(dirs []string) error {
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("create control group: %w", err)
		}
		if err := inheritCPUs(d); err != nil {
			return err
		}
	}
	return nil
}

// inheritCPUs fills the two files that a v1 cpuset group needs before it can
// hold a process.
func inheritCPUs(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.clone_children")); err != nil || filepath.Base(filepath.Dir(dir)) != "cpuset" && !strings.Contains(dir, "/cpuset/") {
		return nil
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
		if err != nil {
			return fmt.Errorf("read parent cpuset: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0); err != nil {
			return fmt.Errorf("fill cpuset: %w", err)
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.clone_children"), []byte("1"), 0)
}

// Enter moves this process into the groups.
func Enter(dirs []string) error {
	for _, d := range dirs {
		pid := []byte(strconv.Itoa(os.Getpid()))
		if err := os.WriteFile(filepath.Join(d, "cgroup.procs"), pid, 0); err != nil {
			return fmt.Errorf("enter control group: %w", err)
		}
	}
	return nil
}

// Kill ends every process in the groups, and removes the groups.
func Kill(ctx context.Context, dirs []string) error {
	for {
		n := 0
		for _, d := range dirs {
			pids := members(d)
			n += len(pids)
			for _, pid := range pids {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if n == 0 {
			return remove(ctx, dirs)
		}
		if err := pause(ctx, "processes of a node to end"); err != nil {
			return err
		}
	}
}

// members lists the processes in a group and below it.
func members(dir string) []int {
	var pids []int
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return nil
		}
		b, _ := os.ReadFile(p)
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

func remove(ctx context.Context, dirs []string) error {
	for _, d := range dirs {
		for removeTree(d); present(d); removeTree(d) {
			if err := pause(ctx, "control group "+d+" to be free"); err != nil {
				return err
			}
		}
	}
	return nil
}

func present(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// removeTree removes the groups from the leaves up. Control files can't be
// removed and need not be.
func removeTree(dir string) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			removeTree(filepath.Join(dir, e.Name()))
		}
	}
	_ = unix.Rmdir(dir)
}

func pause(ctx context.Context, what string) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", what, ctx.Err())
	case <-time.After(10 * time.Millisecond):
		return nil
	}
}
