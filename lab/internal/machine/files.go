package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Locate maps a path inside the machine to a directory of the host that is a
// root of the machine's files and a path below it. While the machine runs that
// is its own view; else its disk.
func (s Spec) Locate(path string) (root, rel string) {
	if leader, err := s.Leader(); err == nil {
		return fmt.Sprintf("/proc/%d/root", leader.PID), path
	}
	for _, bind := range []string{"containerd", "kubelet"} {
		if rest, ok := strings.CutPrefix(path, "/var/lib/"+bind); ok && (rest == "" || rest[0] == '/') {
			return filepath.Join(s.Dir, bind), "/" + rest
		}
	}
	return s.root(), path
}

// Open opens a file of the machine. Links, absolute ones too, are followed
// inside the machine.
func (s Spec) Open(path string, flags int, mode os.FileMode) (*os.File, error) {
	root, rel := s.Locate(path)
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open root of %s: %w", s.Machine, err)
	}
	defer unix.Close(dir)
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_IN_ROOT}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(mode.Perm())
	}
	for {
		fd, err := unix.Openat2(dir, "."+rel, &how)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}
