package converge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// TestLiveIsDurable: what a run says is durable outlives a power cut at that moment, with
// units that start and without. Who finds nothing to do says nothing.
func TestLiveIsDurable(t *testing.T) {
	paths := []string{"/etc/a", "/etc/gone", "/etc/new"}
	for name, unit := range map[string][]desired.Resource{
		"files alone": nil,
		"with a unit": {managed("/etc/containerd/config.toml", "version = 3\n"), started("containerd.service", "/etc/containerd/config.toml")},
	} {
		t.Run(name, func(t *testing.T) {
			before := func() *desired.State {
				return sealed(t, append(unit, managed("/etc/a", "one\n"), managed("/etc/gone", "1\n"))...)
			}
			st := sealed(t, append(unit, managed("/etc/a", "two\n"), managed("/etc/new/b", "b\n"))...)
			undisturbed := newMachine()
			runs(t, undisturbed, before())
			runs(t, undisturbed, st)
			want := tree(undisturbed, paths...)
			for seed := range uint64(20) {
				h := newMachine()
				runs(t, h, before())
				said := 0
				_, err := engine(h, &providers{}).ApplyScope(t.Context(), st, converge.Scope{Live: func() {
					said++
					h.PowerCut(seed)
					panic("the power is gone")
				}})
				if err == nil || said != 1 {
					t.Fatalf("seed %d: said %d times that all is durable, then %v", seed, said, err)
				}
				h.Boot()
				if diff := cmp.Diff(want, tree(h, paths...)); diff != "" {
					t.Fatalf("seed %d: after the power cut (-want +got):\n%s", seed, diff)
				}
				runs(t, h, st)
				if _, err = engine(h, &providers{}).ApplyScope(t.Context(), st, converge.Scope{Live: func() { t.Error("said where nothing was to be done") }}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
