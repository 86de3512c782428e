package hosttest

import (
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/internal/host"
)

// unitUnloaded asks for units that systemd has not loaded, and has no part in loading
// those that it has.
func unitUnloaded(t *testing.T, h host.Host, _ string) {
	const name, none = "berth-conformance-unloaded.service", "berth-conformance-none.service"
	drop := path.Join(unitDir, name+".d", "10-a.conf")
	define(t, h, map[string]string{name: sleeper})
	must(t, h.Mkdir(path.Dir(drop), 0o755))
	t.Cleanup(func() { _, _ = h.Remove(drop), h.Remove(path.Dir(drop)) })
	put(t, h, drop, "[Service]\nNice=1\n")
	unloaded := func(name string, want *host.UnitStatus) {
		t.Helper()
		st, ok, err := h.Unloaded(t.Context(), name)
		must(t, err)
		if want == nil {
			want = &host.UnitStatus{}
		}
		if diff := cmp.Diff(*want, st, cmpopts.EquateEmpty()); diff != "" || ok != (want.Name != "") {
			t.Errorf("%s: %v (-want +got):\n%s", name, ok, diff)
		}
		if listed, err := h.ListUnits(t.Context(), name); err != nil || ok == (len(listed) > 0) {
			t.Errorf("%s: listed as %v, %v", name, listed, err)
		}
	}
	is := func(load, sub string) *host.UnitStatus {
		return &host.UnitStatus{Name: name, LoadState: load, ActiveState: "inactive", SubState: sub, FragmentPath: path.Join(unitDir, name), DropInPaths: []string{drop}}
	}
	unloaded(name, is("loaded", "dead"))
	unloaded(none, &host.UnitStatus{Name: none, LoadState: "not-found", ActiveState: "inactive", SubState: "dead"})
	if run, err := h.Invocation(t.Context(), name); run != "" || err != nil {
		t.Errorf("the run of a unit that is not loaded is %q, %v", run, err)
	}
	must(t, h.StartUnit(t.Context(), name))
	unloaded(name, nil)
	if run, err := h.Invocation(t.Context(), name); run == "" || run != unitStatus(t, h, name).InvocationID || err != nil {
		t.Errorf("the run is %q, %v", run, err)
	}
	stateIsPart(t, h, name)
	must(t, h.StopUnit(t.Context(), name))
	unloaded(name, is("loaded", "dead"))
	stateIsPart(t, h, name)
	stateIsPart(t, h, none)
	if _, _, err := h.Unloaded(t.Context(), "berth-conformance@.service"); err == nil {
		t.Error("a template is described")
	}
	if _, err := h.Invocation(t.Context(), "berth-conformance@.service"); err == nil {
		t.Error("a template has a run")
	}
	if _, err := h.State(t.Context(), "berth-conformance@.service"); err == nil {
		t.Error("a template has a state")
	}
}

// stateIsPart compares the state of a unit with all that is told of it.
func stateIsPart(t *testing.T, h host.Host, name string) {
	t.Helper()
	st, err := h.State(t.Context(), name)
	must(t, err)
	if diff := cmp.Diff(unitStatus(t, h, name).State(), st, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-of all, +alone):\n%s", name, diff)
	}
}
