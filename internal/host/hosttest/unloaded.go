package hosttest

import (
	"errors"
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
	is := func(name string, want bool) {
		t.Helper()
		loaded, err := h.Loaded(t.Context(), name)
		listed, lerr := h.ListUnits(t.Context(), name)
		must(t, errors.Join(err, lerr))
		if loaded != want || len(listed) > 0 != want {
			t.Errorf("%s is loaded: %v, and listed as %v", name, loaded, listed)
		}
	}
	is(name, false)
	is(none, false)
	missing := func(want ...string) {
		t.Helper()
		got, err := h.NotFound(t.Context(), name, none, "local-fs.target")
		must(t, err)
		lists(t, "missing", got, want...)
	}
	missing(none)
	if got, err := h.NotFound(t.Context()); len(got) > 0 || err != nil {
		t.Errorf("of none %v is missing, %v", got, err)
	}
	if _, err := h.NotFound(t.Context(), name, "berth-conformance@.service"); err == nil {
		t.Error("a template is looked for")
	}
	if run, err := h.Invocation(t.Context(), name); run != "" || err != nil {
		t.Errorf("the run of a unit that is not loaded is %q, %v", run, err)
	}
	must(t, h.StartUnit(t.Context(), name))
	is(name, true)
	missing(none)
	if run, err := h.Invocation(t.Context(), name); run == "" || run != unitStatus(t, h, name).InvocationID || err != nil {
		t.Errorf("the run is %q, %v", run, err)
	}
	stateIsPart(t, h, name)
	must(t, h.StopUnit(t.Context(), name))
	is(name, false)
	stateIsPart(t, h, name)
	stateIsPart(t, h, none)
	if _, err := h.Loaded(t.Context(), "berth-conformance@.service"); err == nil {
		t.Error("a template is looked for")
	}
	if _, err := h.Invocation(t.Context(), "berth-conformance@.service"); err == nil {
		t.Error("a template has a run")
	}
	if _, err := h.State(t.Context(), "berth-conformance@.service"); err == nil {
		t.Error("a template has a state")
	}
}

// unitOnce runs oneshots that nobody has described before: that nobody refers to them, and
// that systemd forgets them, hides neither that they ran nor that they were skipped.
func unitOnce(t *testing.T, h host.Host, _ string) {
	const looked, missed, skipped = "berth-conformance-looked.service", "berth-conformance-missed.service", "berth-conformance-skipped.service"
	if missing, err := h.NotFound(t.Context(), missed); err != nil || len(missing) != 1 {
		t.Fatal(missing, err)
	}
	const once = "[Service]\nType=oneshot\nExecStart=/usr/bin/true\n"
	define(t, h, map[string]string{looked: once, missed: once, skipped: "[Unit]\nConditionPathExists=/berth-conformance-none\n" + once})
	for _, name := range []string{looked, skipped} {
		if loaded, err := h.Loaded(t.Context(), name); loaded || err != nil {
			t.Fatal(name, loaded, err)
		}
	}
	for name, ran := range map[string]bool{looked: true, missed: true, skipped: false} {
		must(t, h.StartUnit(t.Context(), name))
		st, err := h.State(t.Context(), name)
		must(t, err)
		if st.ActiveState != "inactive" || st.ServiceType != "oneshot" || st.ConditionResult != ran || st.ConditionTime.IsZero() {
			t.Errorf("%s: %+v", name, st)
		}
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
