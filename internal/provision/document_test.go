package provision

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/exitcode"
)

// TestInputIsGivenUp: somebody who forgot the document presses Ctrl-C once, and so
// does who named a pipe that nobody writes into.
func TestInputIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exitcode.ErrInterrupted)
	input := func(in io.Reader) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(in), nil }
	}
	in, _ := io.Pipe() // never ends
	if _, err := readInput(ctx, "x", input(in)); err == nil || exitcode.OfCommand(err) != exitcode.CommandInterrupted {
		t.Errorf("error %v", err)
	}
	if b, err := readInput(t.Context(), "x", input(strings.NewReader("{}"))); err != nil || string(b) != "{}" {
		t.Errorf("%q, %v", b, err)
	}
	mute, fifo := filepath.Join(t.TempDir(), "mute"), filepath.Join(t.TempDir(), "fifo")
	for _, p := range []string{mute, fifo} {
		if err := syscall.Mkfifo(p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadDocument(ctx, mute); !errors.Is(err, exitcode.ErrInterrupted) {
		t.Errorf("error %v", err)
	}
	go func() {
		if err := os.WriteFile(fifo, []byte("{}"), 0o600); err != nil {
			t.Error(err)
		}
	}()
	if b, err := ReadDocument(t.Context(), fifo); err != nil || string(b) != "{}" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestDocumentsHaveAnEnd: what has none is not read into memory.
func TestDocumentsHaveAnEnd(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long.json")
	if err := os.WriteFile(long, []byte(strings.Repeat(" ", contract.MaxBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, c := range map[string]struct {
		refused bool
		says    string
	}{
		"/dev/zero":    {false, "neither a regular file nor a pipe"},
		t.TempDir():    {false, "neither a regular file nor a pipe"},
		"/nowhere/doc": {false, "no such file"},
		long:           {true, "more than 4 MiB"},
	} {
		_, err := ReadDocument(t.Context(), file)
		if err == nil || !strings.Contains(err.Error(), c.says) || is[*exitcode.RefusedError](err) != c.refused {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestDocumentStays: an agent follows regular files alone, whatever names a pipe has.
func TestDocumentStays(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "node.yaml"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{file: true, pipe: false, "-": false, "/dev/stdin": false, "/proc/self/fd/0": false, dir: false, dir + "/none": false} {
		if got := DocumentStays(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
