package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStays: an agent follows regular files alone, whatever names a pipe has.
func TestStays(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "node.yaml"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{file: true, pipe: false, "-": false, "/dev/stdin": false, "/proc/self/fd/0": false, dir: false, dir + "/none": false} {
		if got := stays(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
