package converge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

// A unit that ran before berth, and rereads a file while it runs, does so when the file
// goes, too.
func TestRereadsWhatGoes(t *testing.T) {
	const at, unit = "/etc/net/one.network", "net.service"
	for name, c := range map[string]struct{ definition, want string }{
		"reloads":  {"[Service]\nExecStart=/usr/bin/containerd\nExecReload=/usr/bin/containerd\n", "reload net.service\n"},
		"restarts": {"[Service]\nExecStart=/usr/bin/containerd\n", "restart net.service\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.Put("/usr/lib/systemd/system/"+unit, c.definition, 0o644)
			if err := h.StartUnit(t.Context(), unit); err != nil {
				t.Fatal(err)
			}
			file := &desired.File{Path: at, Content: desired.Text("one"), Mode: 0o644, Life: desired.Managed}
			runs(t, h, sealed(t, file, &desired.Unit{Base: desired.Base{After: []desired.ID{file.ID()}}, Name: unit,
				Activation: desired.Started, ReloadTriggers: []string{at}}))
			h.ForgetJobs()
			runs(t, h, sealed(t))
			if diff := cmp.Diff(c.want, joinJobs(h)); diff != "" {
				t.Error(diff)
			}
			converged(t, h, sealed(t))
		})
	}
}
