package converge_test

import (
	"testing"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
)

// The programs of one download come together: killed anywhere, and the run after
// that at any effect, too, none stays as it was, and each original comes back.
func TestProgramsComeTogether(t *testing.T) {
	both := &desired.Artifact{Name: "kubernetes", URLs: []string{"https://packages/kubernetes"}, Version: "2.0.0",
		Files: []desired.ArtifactFile{{Path: "/opt/bin/kubelet", Mode: 0o755}, {Path: "/opt/bin/kubectl", Mode: 0o755}}}
	s := sealed(t, both)
	old := func() *machine {
		h := newMachine()
		h.Put("/opt/bin/kubelet", "1.0.0", 0o755)
		h.Put("/opt/bin/kubectl", "1.0.0", 0o755)
		return h
	}
	killed := func(h *machine, n int) bool {
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = fetching(in).Apply(t.Context(), s)
		h.Kill()
		return in.Hit() != nil
	}
	for n := 1; killed(old(), n); n += stride {
		for m := 1; ; m += stride {
			h := old()
			killed(h, n)
			second := killed(h, m)
			if _, err := fetching(h).Apply(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			has(t, h, "/opt/bin/kubelet", "2.0.0")
			has(t, h, "/opt/bin/kubectl", "2.0.0")
			if _, err := fetching(h).Apply(t.Context(), sealed(t)); err != nil {
				t.Fatal(err)
			}
			has(t, h, "/opt/bin/kubelet", "1.0.0")
			has(t, h, "/opt/bin/kubectl", "1.0.0")
			if t.Failed() {
				t.Fatalf("killed at effects %d and %d", n, m)
			}
			if !second {
				break
			}
		}
	}
}
