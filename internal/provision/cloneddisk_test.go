package provision

import (
	"testing"

	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/report"
)

// The pod network that containerd generated goes with the machine that it was
// for, and only then.
func TestCopyResetsPodNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		instance, exitCode string
		boot, kept         bool
	}{
		"captured image":                  {"vm-0", "0", true, false},
		"captured image, by hand":         {"vm-0", "0", false, false},
		"interrupted run of this machine": {"vm-1", "137", true, true},
		"an operator repeats":             {"vm-1", "0", false, true},
		"a sentinel without a machine":    {"", "0", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := machineOf(`{}`)
			h.Put(cni.GeneratedFile, "{}", 0o644)
			d := report.Result{Berth: &report.Details{InstanceID: c.instance}}
			d.ExitCode = c.exitCode
			if err := report.WriteResult(t.Context(), h, d, false); err != nil {
				t.Fatal(err)
			}
			o := options(h)
			o.Boot = c.boot
			if code := Provision(t.Context(), o); code != 0 {
				t.Fatalf("code %d", code)
			}
			if _, err := h.Lstat(cni.GeneratedFile); (err == nil) != c.kept {
				t.Errorf("kept: %v", err == nil)
			}
		})
	}
}
