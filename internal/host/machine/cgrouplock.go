package machine

import (
	"bytes"
	"os"
	"path"
	"slices"
	"time"
)

// A cgrouplock is held again each lockAgain, at most for lockMost of a job: what starts
// later is no start that anybody waits for by the millisecond.
const (
	lockAgain = 10 * time.Millisecond
	lockMost  = time.Second
)

// keepCgroupLock keeps the kernel's lock of moves between cgroups as it is after a move, in
// which the next one waits for nothing, until over is closed: systemd moves each process
// that it starts, and would wait 7 to 17 ms for each. It moves PID 1 to where it is, which
// changes nothing. Where that can't be done systemd waits. See decision 0019.
func keepCgroupLock(over <-chan struct{}) {
	f, err := cgroupOfInit()
	if err != nil {
		return
	}
	defer f.Close()
	again, most := time.NewTicker(lockAgain), time.NewTimer(lockMost)
	defer again.Stop()
	defer most.Stop()
	for {
		if _, err := f.WriteString("1"); err != nil {
			return
		}
		select {
		case <-again.C:
		case <-over:
			return
		case <-most.C:
			return
		}
	}
}

// cgroupOfInit is the file that moves a process into PID 1's cgroup. It has PID 1 in it: a
// path of another namespace may be another cgroup's, and PID 1 is not to be moved.
func cgroupOfInit() (*os.File, error) {
	text, err := os.ReadFile("/proc/1/cgroup")
	if err != nil {
		return nil, err
	}
	for _, name := range procsFiles(text) {
		if in, err := os.ReadFile(name); err == nil && holdsInit(in) {
			return os.OpenFile(name, os.O_WRONLY, 0)
		}
	}
	return nil, os.ErrNotExist
}

// procsFiles are where the file of a process's cgroup may be, by its /proc/PID/cgroup: below the
// mount of version 2 beside those of version 1, or alone. There is none in version 1.
func procsFiles(text []byte) []string {
	for line := range bytes.Lines(text) {
		if in, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\n")), []byte("0::")); ok {
			return []string{path.Join("/sys/fs/cgroup/unified", string(in), "cgroup.procs"), path.Join("/sys/fs/cgroup", string(in), "cgroup.procs")}
		}
	}
	return nil
}

// holdsInit reads a cgroup.procs: a PID in each line, in no order.
func holdsInit(procs []byte) bool {
	return slices.ContainsFunc(bytes.Fields(procs), func(pid []byte) bool { return string(pid) == "1" })
}
