package machine

import (
	"bytes"
	"io"
	"os"
	"path"
	"slices"
	"time"
)

// A move is made each moveEvery, for at most moveMost of a job: nobody waits by the
// millisecond for what starts later.
const (
	moveEvery = 10 * time.Millisecond
	moveMost  = time.Second
)

// keepMovesReady has the processes that systemd starts moved into their unit's cgroup without
// a wait, until over is closed: the kernel lets the first move after a pause wait for 7 to 17
// ms. It moves PID 1 to where it is, which changes nothing. Where that can't be done systemd
// waits. See decision 0019.
func keepMovesReady(over <-chan struct{}) {
	f, err := cgroupOfInit("/")
	if err != nil {
		return
	}
	defer f.Close()
	moveInit(f, over)
}

// moveInit writes PID 1 to a cgroup's file until over is closed, moveMost has passed or it
// fails.
func moveInit(procs io.StringWriter, over <-chan struct{}) {
	again, most := time.NewTicker(moveEvery), time.NewTimer(moveMost)
	defer again.Stop()
	defer most.Stop()
	for {
		if _, err := procs.WriteString("1"); err != nil {
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
func cgroupOfInit(root string) (*os.File, error) {
	text, err := os.ReadFile(path.Join(root, "proc/1/cgroup"))
	if err != nil {
		return nil, err
	}
	for _, name := range procsFiles(text) {
		name = path.Join(root, name)
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
