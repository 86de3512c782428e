package unitlife_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// counts says how often units began to run.
type counts map[string]int

// life is what happens to some units: a contract comes, changes and goes.
type life struct {
	name string
	// there is what is on the machine before: path to content, "-> target" for a
	// link; running are units that run then.
	there   map[string]string
	running []string
	// other is what another contract wants all the while.
	other []desired.Resource
	// first and second are the contract's two versions.
	first, second []desired.Resource
	// meanwhile happens between the two; its runs do not count.
	meanwhile func(w *world)
	// runs are those that the three steps begin: first, second, withdrawal.
	runs [3]counts
	// up run after the first and the second step, down do not.
	up, down []string
	// read are units of which the second step's definition says how to reload: that
	// shows that systemd has read it.
	read []string
	// lasts are units whose state after the end is not compared.
	lasts []string
	// repeats are units that may run once more where a run was cut off: nothing shows
	// that they ran.
	repeats []string
	// fails is what the error of the first step says; a unit that does not come up
	// leaves the names in place.
	fails string
	// edits are files that somebody else edits.
	edits []string
	// remark is what both steps remark.
	remark string
}

func file(p, content string) *desired.File {
	return &desired.File{Path: p, Content: desired.Text(content), Mode: 0o644, Life: desired.Managed}
}

// unit is a resource of words: enabled, disabled, started, stopped.
func unit(name, words string, triggers ...string) *desired.Unit {
	u := &desired.Unit{Name: name, Triggers: triggers}
	for word := range strings.FieldsSeq(words) {
		switch word {
		case "enabled", "disabled":
			u.Enablement = desired.Enablement(word)
		default:
			u.Activation = desired.Activation(word)
		}
	}
	return u
}

// after orders a unit after another.
func after(u *desired.Unit, other string) *desired.Unit {
	u.After = append(u.After, desired.UnitID(other))
	return u
}

const (
	marking   = "ExecStartPre=/usr/bin/mktemp -q /run/life/%n.XXXXXX\n"
	reloading = "ExecReload=/usr/bin/mktemp -q /run/life/reload-%n.XXXXXX\n"
	install   = "[Install]\nWantedBy=multi-user.target\n"
)

// daemon is the definition of a service that runs; version tells two apart.
func daemon(version string, more ...string) string {
	return "# " + version + "\n" + strings.Join(more, "") + "[Service]\n" + marking + "ExecStart=/usr/bin/sleep infinity\n"
}

func once(version string, more ...string) string {
	return "# " + version + "\n[Service]\nType=oneshot\n" + marking + strings.Join(more, "") + "ExecStart=/usr/bin/true\n"
}

// units are all that a life is about.
func (l *life) units() []string {
	out := slices.Concat(l.up, l.down, l.running, l.lasts)
	for _, r := range slices.Concat(l.first, l.second, l.other) {
		if u, ok := r.(*desired.Unit); ok && !strings.Contains(u.Name, "@.") {
			out = append(out, u.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (l *life) lasting(name string) bool { return slices.Contains(l.lasts, name) }

// step is one of a life.
type step struct {
	name string
	of   []desired.Resource
	last bool
}

func (l *life) steps() []step {
	return []step{{"first", l.first, false}, {"second", l.second, false}, {"withdrawn", nil, true}}
}

func state(t testing.TB, o desired.Owner, rs []desired.Resource) *desired.State {
	t.Helper()
	s := &desired.State{Owner: o}
	s.Add(rs...)
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLives lives each life on the model, and in a machine on that.
func TestLives(t *testing.T) {
	for _, l := range slices.Concat(lives(), ofKernels()) {
		t.Run("model/"+l.name, func(t *testing.T) { l.live(t, modelled()) })
	}
	if !inMachine() {
		return
	}
	of := lives()
	if ownKernel() {
		of = ofKernels()
	}
	for _, l := range of {
		t.Run("machine/"+l.name, func(t *testing.T) {
			w := real(t)
			t.Cleanup(func() { w.clear(l, t.Failed()) })
			l.live(t, w)
		})
	}
}

// live goes through all steps, each with an empty plan after it.
func (l *life) live(t *testing.T, w *world) {
	w.arrange(l)
	before := w.snapshot(l)
	l.beginOther(t, w)
	for i, s := range l.steps() {
		l.between(w, i)
		l.step(t, w, i, s)
		w.rest()
	}
	if len(l.other) > 0 {
		if _, err := w.apply(state(t, desired.OwnerAKS, nil)); err != nil {
			t.Errorf("the other contract goes: %v", err)
		}
	}
	after := w.snapshot(l)
	for _, p := range l.edits {
		after[p] = before[p]
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("withdrawn (-before +after): %s", diff)
	}
}

func (l *life) beginOther(t *testing.T, w *world) {
	t.Helper()
	if len(l.other) == 0 {
		return
	}
	if _, err := w.apply(state(t, desired.OwnerAKS, l.other)); err != nil {
		t.Fatalf("the other contract: %v", err)
	}
	w.rest()
}

// between is what somebody else does before a step.
func (l *life) between(w *world, i int) {
	if i == 1 && l.meanwhile != nil {
		l.meanwhile(w)
		w.rest()
	}
}

func (l *life) step(t *testing.T, w *world, i int, s step) {
	t.Helper()
	st := state(t, desired.OwnerOSC, s.of)
	before, ids := w.runs(), w.ids(l)
	w.reloads = 0
	res, err := w.apply(st)
	if w.reloads > 1 {
		t.Errorf("%s: systemd read all definitions %d times", s.name, w.reloads)
	}
	if i == 0 && l.fails != "" {
		if err == nil || !strings.Contains(err.Error(), l.fails) {
			t.Fatalf("%s: error %v, want %q", s.name, err, l.fails)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	if diff := cmp.Diff(l.expected(i), l.began(w, before, ids)); diff != "" {
		t.Errorf("%s: runs (-want +got): %s\nplan %s", s.name, diff, lines(res.Plan))
	}
	if l.remark != "" && !s.last && !strings.Contains(strings.Join(res.Plan.Remarks, "\n"), l.remark) {
		t.Errorf("%s: remarks %q", s.name, res.Plan.Remarks)
	}
	l.converged(t, w, s, st)
}

func (l *life) expected(i int) counts {
	if l.runs[i] == nil {
		return counts{}
	}
	return l.runs[i]
}

// began is what a step made run.
func (l *life) began(w *world, before map[string]int, ids map[string]string) counts {
	out := counts(since(before, w.runs()))
	for name, id := range w.ids(l) {
		if ids[name] != id {
			out[name]++
		}
	}
	return out
}

// converged checks that nothing is left to do, that systemd has read all there
// is, and what runs.
func (l *life) converged(t testing.TB, w *world, s step, st *desired.State) {
	t.Helper()
	if p, err := w.engine(w).Plan(tctx, st); err != nil || !p.Empty() {
		t.Errorf("%s: then there is %s, %v", s.name, lines(p), err)
	}
	for name, st := range w.loaded(l.units()) {
		if st.NeedDaemonReload {
			t.Errorf("%s: systemd holds an old definition of %s", s.name, name)
		}
	}
	if s.last {
		return
	}
	for _, name := range l.read {
		if got := w.loaded([]string{name})[name].CanReload; s.name == "second" && !got {
			t.Errorf("%s: systemd has not read the definition of %s", s.name, name)
		}
	}
	for _, name := range l.up {
		if got := w.loaded([]string{name})[name].ActiveState; got != "active" {
			t.Errorf("%s: %s is %q", s.name, name, got)
		}
	}
	for _, name := range l.down {
		if got := w.loaded([]string{name})[name].ActiveState; got != "" && got != "inactive" {
			t.Errorf("%s: %s is %q", s.name, name, got)
		}
	}
}

func lines(p *converge.Plan) string {
	if p == nil {
		return "no plan"
	}
	var out []string
	for _, a := range p.Actions {
		out = append(out, string(a.Verb)+" "+string(a.ID)+" ("+a.Reason+")")
	}
	return strings.Join(out, ", ")
}

// Every life is told once, and says what it is about.
func TestLivesAreDistinct(t *testing.T) {
	names := map[string]bool{}
	for _, l := range lives() {
		if names[l.name] || len(l.units()) == 0 {
			t.Errorf("%q is told twice, or of no unit", l.name)
		}
		names[l.name] = true
	}
}
