package survey

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
)

// Holder is the program that has a socket open: "nginx (pid 12)". It is "" where that
// can't be seen: another user's processes are for root to look into.
func (Machine) Holder(inode uint64) string {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return ""
	}
	want := fmt.Sprintf("socket:[%d]", inode)
	for _, e := range all {
		if _, err := strconv.Atoi(e.Name()); err == nil && has(path.Join("/proc", e.Name(), "fd"), want) {
			name, _ := os.ReadFile(path.Join("/proc", e.Name(), "comm"))
			return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), e.Name())
		}
	}
	return ""
}

// has says whether one of a process's descriptors is of a socket.
func has(dir, socket string) bool {
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if target, err := os.Readlink(path.Join(dir, fd.Name())); err == nil && target == socket {
			return true
		}
	}
	return false
}
