package converge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

// An automount and its mount: what changes restarts once, and both are gone in the
// end. The lives of units are lived in containers, too, where the kernel has none.
func TestAutomount(t *testing.T) {
	h := newMachine()
	before := others(h)
	st := func(options string) *desired.State {
		return sealed(t, managed("/etc/systemd/system/data.automount", "[Automount]\nWhere=/data\n"),
			managed("/etc/systemd/system/data.mount", "[Mount]\nWhat=tmpfs\nWhere=/data\nType=tmpfs\nOptions="+options+"\n"), started("data.automount"))
	}
	for _, options := range []string{"size=1M", "size=2M"} {
		runs(t, h, st(options))
		converged(t, h, st(options))
	}
	if diff := cmp.Diff("start data.automount\n", joinJobs(h)); diff != "" {
		t.Error(diff)
	}
	runs(t, h, sealed(t))
	converged(t, h, sealed(t))
	activities(t, h, map[string]string{"data.automount": "inactive", "data.mount": "inactive"})
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}
