package hosttest

import (
	"bytes"
	"errors"
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
