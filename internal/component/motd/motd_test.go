package motd

import (
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
)

func TestResources(t *testing.T) {
	if rs := Resources(nil); rs != nil {
		t.Errorf("no message, but %v", rs)
	}
	f := golden.File(t, golden.State(t, Resources([]byte("Welcome\n"))), "/etc/motd")
	if got := string(f.Content.Data()); got != "Welcome\n" || f.Mode != 0o644 {
		t.Errorf("mode %s, content %q; everybody reads it, and nothing is added", f.Mode, got)
	}
}
