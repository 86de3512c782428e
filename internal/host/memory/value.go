package memory

import (
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/host"
)

// value is a pseudo-file of the kernel.
type value struct {
	boot  string
	write func(now, written string) (string, error)
}

// Value makes a pseudo-file under /proc or /sys: its size is 0, WriteValue
// changes it, each boot gives it this value again. Numbers that are written read
// back as the kernel prints them: tabs between, a newline at the end.
func (h *Host) Value(p, boot string) {
	h.ValueFunc(p, boot, func(_, written string) (string, error) { return asPrinted(written), nil })
}

// ValueFunc is Value with a function that makes of the value as it is and what
// is written the value that then reads back (e.g. "always [madvise] never"); its
// error is that of the write.
func (h *Host) ValueFunc(p, boot string, write func(now, written string) (string, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.values[p] = value{boot, write}
	h.install(p, &inode{mode: 0o644, content: []byte(boot), pseudo: true})
}

// Values are the pseudo-files as they read now, except the boot ID.
func (h *Host) Values() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]string{}
	for p := range h.values {
		if n, err := h.find(p); err == nil {
			out[p] = string(n.content)
		}
	}
	return out
}

// WriteValue implements host.FS.
func (h *Host) WriteValue(p string, written []byte) error {
	return h.effect("write", p, func(at dirEntry) error {
		v, known := h.values[p]
		switch {
		case !host.IsValue(p):
			return syscall.EINVAL
		case at.node == nil:
			return syscall.ENOENT
		case !known:
			return syscall.EACCES
		}
		now := h.tick()
		next, err := v.write(string(at.node.content), string(written))
		if err != nil {
			return err
		}
		at.node.content, at.node.mtime, at.node.ctime = []byte(next), now, now
		return nil
	})
}

func asPrinted(written string) string {
	fields := strings.Fields(written)
	for _, f := range fields {
		if _, err := strconv.ParseInt(f, 10, 64); err != nil {
			return strings.TrimSpace(written) + "\n"
		}
	}
	return strings.Join(fields, "\t") + "\n"
}
