package unitlife_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// outcome is what must not depend on faults.
type outcome struct {
	Machine map[string]string
	Runs    map[string]int
}

// until lives a life on a model up to the end of a step; the machine is as before
// the step when it is -1.
func (l *life) until(t *testing.T, last int) *world {
	t.Helper()
	w := modelled()
	w.arrange(l)
	l.beginOther(t, w)
	for i, s := range l.steps() {
		l.between(w, i)
		if i > last {
			return w
		}
		if _, err := w.apply(state(t, desired.OwnerOSC, s.of)); (err != nil) != l.failing(i) {
			t.Fatalf("%s: %v", s.name, err)
		}
		w.rest()
	}
	return w
}

func (l *life) failing(i int) bool { return i == 0 && l.fails != "" }

// look describes units by what they do and what systemd holds of them, and the
// tree by what is not berth's own.
func (l *life) look(w *world, before map[string]int) outcome {
	o := outcome{Machine: w.snapshot(l), Runs: since(before, w.runs())}
	for name, st := range w.loaded(l.units()) {
		if slices.Contains(l.read, name) {
			o.Machine["can reload "+name] = strconv.FormatBool(st.CanReload)
		}
		if st.ActiveState != "inactive" {
			o.Machine["unit "+name] = st.ActiveState + " " + w.definition(name)
		}
	}
	return o
}

// definition is what a unit last started with.
func (w *world) definition(unit string) string {
	for _, j := range slices.Backward(w.model.Jobs()) {
		if j.Unit == unit && j.Verb != "stop" {
			return j.Definition
		}
	}
	return ""
}

// fault is a way in which a run ends early, and how the machine goes on.
type fault struct {
	name string
	kind effect.Kind
	err  error
	cut  bool
	seed uint64
}

// faultsAt are those at an effect: a kill, and a power cut or an error, another at
// each.
func faultsAt(n int) []fault {
	cuts := []uint64{memory.LoseAll, memory.NamesOnly, uint64(n) + 100}
	all := []fault{
		{name: "killed after", kind: effect.StopAfter},
		{name: "cut after", kind: effect.StopAfter, cut: true, seed: cuts[n/2%len(cuts)]},
		{name: "refused", kind: effect.Fail, err: syscall.ENOSPC},
	}
	if stride > 1 {
		return all[n%len(all) : n%len(all)+1]
	}
	return []fault{all[0], all[1+n%2]}
}

// Wherever a step is cut off, the next run makes of the machine what an
// undisturbed one makes of it, with the same runs of the same units; after a power
// cut all but the runs.
func TestLivesCutOffAnywhere(t *testing.T) {
	for _, l := range slices.Concat(lives(), ofKernels()) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			tried := 0
			for i, s := range l.steps() {
				if !l.failing(i) {
					tried += l.cutOff(t, i, state(t, desired.OwnerOSC, s.of))
				}
			}
			t.Logf("%d faults", tried)
		})
	}
}

// cutOff disturbs one step at every effect.
func (l *life) cutOff(t *testing.T, i int, st *desired.State) (tried int) {
	t.Helper()
	w := l.until(t, i-1)
	before, counting := w.runs(), effect.Inject(w.model, nil)
	if _, err := w.engine(counting).Apply(tctx, st); err != nil {
		t.Fatal(err)
	}
	want := l.look(w, before)
	for n := 1; n <= counting.Count(); n += stride {
		for _, f := range faultsAt(n) {
			w := l.until(t, i-1)
			before := w.runs()
			f.disturb(t, w, n, st)
			w.again(t, st)
			if diff := l.differs(f, want, l.look(w, before)); diff != "" {
				t.Fatalf("%s, %s effect %d (-want +got): %s", l.steps()[i].name, f.name, n, diff)
			}
			tried++
		}
	}
	return tried
}

// disturb applies with a fault at an effect, and lets the machine go on from it.
func (f *fault) disturb(t *testing.T, w *world, n int, st *desired.State) {
	t.Helper()
	in := effect.Inject(w.model, effect.Plan{{At: n, Kind: f.kind, Err: f.err}})
	_, err := w.engine(in).Apply(tctx, st)
	switch {
	case in.Hit() == nil, err == nil:
		t.Fatalf("%s effect %d: %v, error %v", f.name, n, in.Hit(), err)
	case f.err != nil && !errors.Is(err, f.err):
		t.Fatalf("%s effect %v: error %v", f.name, in.Hit(), err)
	case f.cut:
		w.model.PowerCut(f.seed)
		w.model.Boot()
	case f.kind != effect.Fail:
		w.model.Kill()
	}
}

// again runs to the end and sees that nothing is left.
func (w *world) again(t *testing.T, st *desired.State) {
	t.Helper()
	if _, err := w.apply(st); err != nil {
		t.Fatalf("the run after the fault: %v", err)
	}
	if p, err := w.engine(w).Plan(tctx, st); err != nil || !p.Empty() {
		t.Fatalf("the run after the fault left %s, %v", lines(p), err)
	}
}

// differs compares what a disturbed step came to. A boot starts what is enabled,
// and ends what is not.
func (l *life) differs(f fault, want, got outcome) string {
	if f.cut {
		return cmp.Diff(lasting(want.Machine), lasting(got.Machine))
	}
	got.Runs = maps.Clone(got.Runs)
	for _, name := range l.repeats {
		if got.Runs[name] == want.Runs[name]+1 {
			got.Runs[name]--
		}
	}
	return cmp.Diff(want, got)
}

// lasting is what is on the disk.
func lasting(m map[string]string) map[string]string {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(name, _ string) bool { return !strings.HasPrefix(name, "/") || strings.HasPrefix(name, "/run/") })
	return m
}
