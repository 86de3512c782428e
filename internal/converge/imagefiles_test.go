package converge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/paths"
)

// Files of an image stay until another image is asked for, or nobody can tell any
// more which one they are out of.
func TestFilesOfAnImage(t *testing.T) {
	const kubelet = "/opt/bin/kubelet"
	state := func(image string) *desired.State {
		st := &desired.State{Owner: desired.OwnerOSC}
		st.Add(&desired.Artifact{Name: image, Image: image, Files: []desired.ArtifactFile{{Member: "/kubelet", Path: kubelet, Mode: 0o755}}})
		must(st.Seal())
		return st
	}
	for name, c := range map[string]struct {
		do    func(h *machine)
		image string
		plan  []string
	}{
		"the same":      {func(*machine) {}, "r.example/node:v1", []string{}},
		"another":       {func(*machine) {}, "r.example/node:v2", []string{"fetch artifact:r.example/node:v2"}},
		"edited":        {func(h *machine) { h.Overwrite(kubelet, "PROGRAM") }, "r.example/node:v1", []string{"fetch artifact:r.example/node:v1"}},
		"ledger lost":   {func(h *machine) { must(h.Remove(paths.StateDir + "/ledger.json")) }, "r.example/node:v1", []string{"fetch artifact:r.example/node:v1"}},
		"another's now": {func(h *machine) { must(h.Remove(kubelet)); h.Put(kubelet, "x", 0o755) }, "r.example/node:v1", []string{"fetch artifact:r.example/node:v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			e := converge.New(converge.Options{Host: h, Providers: converge.Providers{Fetcher: shelf{}}})
			first := state("r.example/node:v1")
			if _, err := e.Apply(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			must(e.Remember(t.Context(), first))
			c.do(h)
			st := state(c.image)
			res, err := e.Apply(t.Context(), st)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.plan, verbs(res.Plan)); diff != "" {
				t.Error(diff)
			}
			if p, err := e.Plan(t.Context(), st); err != nil || !p.Empty() {
				t.Errorf("plan afterwards: %v, %v", verbs(p), err)
			}
		})
	}
}
