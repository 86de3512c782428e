package hosttest

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

// largeFile is long enough for what an implementation does between the pieces.
func largeFile(t *testing.T, h host.Host, dir string) {
	var all []byte
	f, err := h.Create(dir + "/f")
	must(t, err)
	for _, size := range []int{1, 5 << 20, 3 << 20, 12345, 9 << 20, 0, 7} {
		piece := bytes.Repeat([]byte{byte(size), byte(len(all) >> 10), 'x'}, size/3+1)
		n, err := f.Write(piece)
		must(t, err)
		if n != len(piece) {
			t.Fatalf("wrote %d of %d bytes", n, len(piece))
		}
		all = append(all, piece...)
	}
	must(t, errors.Join(f.Chmod(0o644), f.Sync(), f.Close()))
	got, err := h.ReadFile(dir + "/f")
	must(t, err)
	if !bytes.Equal(all, got) {
		t.Error("what was written does not read back")
	}
}

// hugeFile is more than anybody may hold: it is refused whole, and can still be read
// piece by piece. At the bound it is read.
func hugeFile(t *testing.T, h host.Host, dir string) {
	f, err := h.Create(dir + "/f")
	must(t, err)
	piece := make([]byte, 4<<20)
	for range host.MaxFile / len(piece) {
		_, err := f.Write(piece)
		must(t, err)
	}
	got, err := h.ReadFile(dir + "/f")
	if err != nil || len(got) != host.MaxFile {
		t.Errorf("at the bound: %d bytes, %v", len(got), err)
	}
	_, err = f.Write([]byte("x"))
	must(t, err)
	must(t, f.Close())
	if got, err := h.ReadFile(dir + "/f"); !errors.Is(err, syscall.EFBIG) || len(got) > 0 {
		t.Errorf("above the bound: %d bytes, %v", len(got), err)
	}
	r, err := h.Open(dir + "/f")
	must(t, err)
	n, err := io.Copy(io.Discard, r)
	if must(t, errors.Join(err, r.Close())); n != host.MaxFile+1 {
		t.Errorf("%d bytes", n)
	}
}
