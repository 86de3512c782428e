package provision

import (
	"bytes"
	"io/fs"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/exitcode"
)

// readOnly refuses every change of the disk; memory takes them.
type readOnly struct{ fullDisk }

func (readOnly) Remove(p string) error {
	return &fs.PathError{Op: "remove", Path: p, Err: syscall.EROFS}
}

// TestOldResultOnAReadOnlyDisk: an old result can't be taken away, the new one
// stands in memory and counts.
func TestOldResultOnAReadOnlyDisk(t *testing.T) {
	h := machineOf(`{}`)
	if code := Provision(t.Context(), options(h)); code != 0 {
		t.Fatalf("code %d", code)
	}
	if code := Provision(t.Context(), options(readOnly{fullDisk{h}})); code != exitcode.Write {
		t.Errorf("code %d", code)
	}
	out := &bytes.Buffer{}
	if code, err := Wait(t.Context(), waitOptions(h, out)); code != exitcode.Write || err != nil {
		t.Errorf("wait: code %d, %v, printed %s", code, err, out)
	}
}
