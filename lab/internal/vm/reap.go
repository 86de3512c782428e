package vm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Reap ends the QEMU process that a killed lab left behind in a machine's
// directory. It is harmless when there is none.
func Reap(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "qemu.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read pid file: %w", err)
	}
	if !isQEMU(pid, dir) {
		return os.RemoveAll(filepath.Join(dir, "qemu.pid"))
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill qemu %d: %w", pid, err)
	}
	for deadline := time.Now().Add(10 * time.Second); isQEMU(pid, dir); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("qemu %d does not end", pid)
		}
	}
	return os.RemoveAll(filepath.Join(dir, "qemu.pid"))
}

// isQEMU guards against a number that meanwhile belongs to another process. A
// zombie has no command line.
func isQEMU(pid int, dir string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(line, []byte("qemu-system")) &&
		bytes.Contains(line, []byte(filepath.Join(dir, overlayName)))
}
