package ulimits

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
)

func TestResources(t *testing.T) {
	if rs := Resources(Settings{}); rs != nil {
		t.Errorf("no limits, but %v", rs)
	}
	st := golden.State(t, Resources(Settings{NoFile: "1024:4096", MemLock: "infinity"}))
	f := golden.File(t, st, DropIn)
	want := "# Written by berth. Settings of your own go into a drop-in.\n[Service]\nLimitMEMLOCK=infinity\nLimitNOFILE=1024:4096\n"
	if diff := cmp.Diff(want, string(f.Content.Data())); diff != "" || f.Mode != 0o600 {
		t.Errorf("mode %s, content: %s", f.Mode, diff)
	}
}
