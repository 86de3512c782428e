package ledger

import (
	"io/fs"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

// A mode reads as chmod(1) takes it, with the bits that Go keeps elsewhere.
func TestAttributeDifference(t *testing.T) {
	for _, c := range []struct {
		have, want fs.FileMode
		says       string
	}{
		{fs.ModeDir | 0o755, 0o755, ""},
		{fs.ModeDir | fs.ModeSticky | 0o777, 0o755, "mode 1777, want 0755"},
		{fs.ModeSetuid | fs.ModeSetgid | 0o755, 0o755, "mode 6755, want 0755"},
		{0o755, fs.ModeSetuid | 0o755, "mode 0755, want 4755"},
	} {
		if got := AttributeDifference(&host.Info{Mode: c.have}, c.want, 0, 0); got != c.says {
			t.Errorf("%v for %v: %q", c.have, c.want, got)
		}
	}
}
