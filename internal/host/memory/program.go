package memory

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/host"
)

// Program is what a program does. It may use the host's files.
type Program func(host.Command) host.Output

// Program makes what is at a path behave as f. A program that is not there is
// made (durable, mode 0755, its path as content).
func (h *Host) Program(p string, f Program) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.follow(p, false); err != nil {
		h.install(p, &inode{mode: 0o755, content: []byte(p)})
	}
	h.programs[p] = f
}

// Run implements host.Runner. A program that is in the tree but has no model is
// ENOEXEC.
func (h *Host) Run(ctx context.Context, c host.Command) (host.Output, error) {
	if err := ctx.Err(); err != nil {
		return host.Output{}, err
	}
	f, err := h.program(c.Path)
	if err != nil {
		return host.Output{}, pathError("fork/exec", c.Path, err)
	}
	out := f(c)
	out.Stdout, out.Stderr = c.Tail(out.Stdout), c.Tail(out.Stderr)
	if out.ExitCode != 0 {
		return out, &host.ExitError{Command: c, Output: out}
	}
	return out, nil
}

func (h *Host) program(p string) (Program, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tick()
	if h.off {
		return nil, errOff
	}
	p, err := h.lookPath(p)
	if err != nil {
		return nil, err
	}
	f, ok := h.programs[p]
	if !ok {
		return nil, syscall.ENOEXEC
	}
	return f, nil
}

// lookPath finds a program as the real host does.
func (h *Host) lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, h.executable(name)
	}
	for dir := range strings.SplitSeq(host.SearchPath, ":") {
		if p := path.Join(dir, name); h.executable(p) == nil {
			return p, nil
		}
	}
	return "", syscall.ENOENT
}

// executable is nil for a file that can be run.
func (h *Host) executable(p string) error {
	n, err := h.follow(p, false)
	switch {
	case err != nil:
		return err
	case !n.mode.IsRegular(), n.mode&fs.ModePerm&0o111 == 0:
		return syscall.EACCES
	}
	return nil
}
