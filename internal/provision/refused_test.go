package provision

import (
	"bytes"
	"context"
	"io/fs"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
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
	if code := Provision(t.Context(), options(readOnly{fullDisk{h}})); code != report.CodeWrite {
		t.Errorf("code %d", code)
	}
	out := &bytes.Buffer{}
	if code, err := Wait(t.Context(), waitOptions(h, out, nil)); code != report.CodeWrite || err != nil {
		t.Errorf("wait: code %d, %v, printed %s", code, err, out)
	}
}

// TestLockedByAnotherRun: the result belongs to the run that holds the machine;
// where another command does, the refusal is the result.
func TestLockedByAnotherRun(t *testing.T) {
	for holder, written := range map[string]bool{Command + " (pid 7)": false, "berth apply (pid 7)": true} {
		h := machineOf(`{}`)
		o := options(h)
		o.Apply = func(context.Context, *desired.State, converge.Observer) (*converge.Result, error) {
			return nil, &host.LockedError{Path: "/run/berth/lock", Holder: holder}
		}
		if code := Provision(t.Context(), o); code != report.CodeLocked {
			t.Errorf("%s: code %d", holder, code)
		}
		for _, p := range []string{report.ResultPath, report.SentinelPath} {
			if _, err := h.Lstat(p); (err == nil) != written {
				t.Errorf("%s: %s: %v", holder, p, err)
			}
		}
	}
}
