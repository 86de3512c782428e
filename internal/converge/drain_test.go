package converge_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// drainer notes what it is asked, and what the machine looks like by then.
type drainer struct {
	h   *machine
	log []string
	err error
	saw func()
}

func (d *drainer) Drain(_ context.Context, by converge.Disturbance) error {
	if by.Changes(flags) && slices.Contains(by.Units, "kubelet.service") {
		d.log = append(d.log, "drain")
	}
	d.saw()
	return d.err
}

func (d *drainer) Restore(_ context.Context, o converge.Outcome) error {
	d.log = append(d.log, map[converge.Outcome]string{converge.Unchanged: "unchanged", converge.Stands: "restore", converge.Broken: "stays", converge.Returned: "later"}[o])
	return nil
}

// drained applies a wish and returns what the drainer was asked.
func drained(t *testing.T, d *drainer, w wish, edit ...func(*converge.Trial)) ([]string, error) {
	t.Helper()
	d.log = nil
	e := engine(d.h, &providers{}, func(o *converge.Options) { o.Trial, o.Drainer = w.trial(t, edit...), d })
	_, err := e.Apply(t.Context(), w.state(t))
	return d.log, err
}

// TestDrainComesBetween: the node is emptied when all is staged and nothing shows, and is
// given back after a change, after one that was taken back, and by a run that has nothing
// else to do.
func TestDrainComesBetween(t *testing.T) {
	h := fussy(t)
	d := &drainer{h: h}
	d.saw = func() {
		if got, err := h.ReadFile(flags); err != nil || string(got) != goodWish.Kubelet || len(h.Jobs()) > 0 {
			t.Errorf("something shows by then: %q %v, jobs %v", got, err, h.Jobs())
		}
		if names, err := h.ReadDir(path.Dir(flags)); err != nil || len(names) != 2 {
			t.Errorf("nothing is staged by then: %q %v", names, err)
		}
		if _, err := h.Lstat(noteFile); err == nil {
			t.Error("it is on trial by then")
		}
	}
	if log, err := drained(t, d, badWish); err == nil || !slices.Equal(log, []string{"drain", "restore"}) {
		t.Errorf("taken back: %v, asked %q", err, log)
	}
	inForce(t, h, goodWish)
	h.Flush()
	h.Advance(time.Minute)
	h.ForgetJobs()
	if log, err := drained(t, d, newWish); err != nil || !slices.Equal(log, []string{"drain", "restore"}) {
		t.Errorf("changed: %v, asked %q", err, log)
	}
	if log, err := drained(t, d, newWish); err != nil || !slices.Equal(log, []string{"restore"}) {
		t.Errorf("nothing to do: %v, asked %q", err, log)
	}
}

// TestDrainFailsFirst: where the node can't be emptied nothing changes.
func TestDrainFailsFirst(t *testing.T) {
	h := fussy(t)
	d := &drainer{h: h, err: errors.New("a pod stays"), saw: func() {}}
	if log, err := drained(t, d, newWish); !errors.Is(err, d.err) || !slices.Equal(log, []string{"drain", "unchanged"}) {
		t.Errorf("%v, asked %q", err, log)
	}
	if len(h.Jobs()) > 0 {
		t.Errorf("jobs: %v", h.Jobs())
	}
	inForce(t, h, goodWish)
}

// TestBrokenStaysEmpty: what is broken and was not taken back takes no pods until a run
// has mended it.
func TestBrokenStaysEmpty(t *testing.T) {
	d := &drainer{h: fussy(t), saw: func() {}}
	log, err := drained(t, d, badWish, func(tr *converge.Trial) { tr.NoRevert = true })
	if err == nil || !slices.Equal(log, []string{"drain", "stays"}) {
		t.Errorf("%v, asked %q", err, log)
	}
	if log, err := drained(t, d, goodWish); err != nil || log[len(log)-1] != "restore" {
		t.Errorf("mended: %v, asked %q", err, log)
	}
}

// TestAPartMendsNothing: a run that looks at a part says nothing of the rest, and nor does
// one that fails before anything changes.
func TestAPartMendsNothing(t *testing.T) {
	d := &drainer{h: fussy(t), saw: func() {}}
	e := engine(d.h, &providers{}, func(o *converge.Options) { o.Trial, o.Drainer = goodWish.trial(t), d })
	for name, s := range map[string]converge.Scope{
		"some resources": {IDs: []desired.ID{desired.FileID(flags)}},
		"some actions":   {Decide: func(converge.Action) converge.Decision { return converge.Skip }},
	} {
		d.log = nil
		if _, err := e.ApplyScope(t.Context(), goodWish.state(t), s); err != nil || !slices.Equal(d.log, []string{"unchanged"}) {
			t.Errorf("%s: %v, asked %q", name, err, d.log)
		}
	}
}

// TestDrainWaitsForTheWord: a change that waits for a person's word keeps the node empty,
// also when another run comes meanwhile; the word, or the end of the time, gives it back.
func TestDrainWaitsForTheWord(t *testing.T) {
	within := func(tr *converge.Trial) { tr.Within = 5 * time.Minute }
	for name, end := range map[string]func(*converge.Engine) error{
		"confirmed":  func(e *converge.Engine) error { _, err := e.Confirm(t.Context()); return err },
		"taken back": func(e *converge.Engine) error { _, err := e.Revert(t.Context()); return err },
		"taken back at boot": func(e *converge.Engine) error {
			if err := e.EndDrain(t.Context()); err != nil {
				return err // it is on trial still
			}
			_, err := e.Restore(t.Context())
			return errors.Join(err, e.EndDrain(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &drainer{h: fussy(t), saw: func() {}}
			d.h.Put("/proc/uptime", "100.00 7.00\n", 0o444)
			if log, err := drained(t, d, newWish, within); err != nil || !slices.Equal(log, []string{"drain"}) {
				t.Errorf("%v, asked %q", err, log)
			}
			log, err := drained(t, d, goodWish, func(tr *converge.Trial) { tr.Yields = true })
			if waits := (*converge.OnTrialError)(nil); !errors.As(err, &waits) || len(log) > 0 {
				t.Errorf("another run: %v, asked %q", err, log)
			}
			d.log = nil
			e := engine(d.h, &providers{}, func(o *converge.Options) { o.Trial, o.Drainer = wish{}.trial(t), d })
			want := []string{"restore"}
			if name == "taken back at boot" {
				d.h.Boot()
				want = []string{"later", "restore"}
			}
			if err := end(e); err != nil || !slices.Equal(d.log, want) {
				t.Errorf("%v, asked %q", err, d.log)
			}
		})
	}
}

// TestRepairIsNoUpgrade: a program that comes back as it was is told apart from another
// version, also when that could not be put in place at first.
func TestRepairIsNoUpgrade(t *testing.T) {
	const program = "/opt/bin/kubelet"
	h := newMachine()
	must(h.Remove(program))
	var repairs []bool
	d := &sorting{repairs: func(by converge.Disturbance) { repairs = append(repairs, by.Repairs(program)) }}
	apply := func(r desired.Resource) error {
		e := engine(h, &providers{}, func(o *converge.Options) { o.Fetcher, o.Drainer = store{}, d })
		_, err := e.Apply(t.Context(), sealed(t, r))
		return err
	}
	file := managed(program, "inline")
	for _, step := range []struct {
		name   string
		damage func()
		want   desired.Resource
		refuse error
		repair bool
	}{
		{"first", func() {}, kubelet("1.0.0"), nil, false},
		{"gone", func() { must(h.Remove(program)) }, kubelet("1.0.0"), nil, true},
		{"edited", func() { h.Put(program, "x", 0o755) }, kubelet("1.0.0"), nil, true},
		{"another, refused", func() {}, kubelet("2.0.0"), errors.New("a pod stays"), false},
		{"another", func() {}, kubelet("2.0.0"), nil, false},
		{"gone, and another", func() { must(h.Remove(program)) }, kubelet("3.0.0"), nil, false},
		{"a file", func() {}, file, nil, false},
		{"the file edited", func() { h.Put(program, "x", 0o644) }, file, nil, true},
		{"another file", func() {}, managed(program, "other"), nil, false},
		{"a link", func() { h.Put("/opt/bin/kubelet-1", "1", 0o755) }, &desired.Link{Path: program, Target: "kubelet-1"}, nil, false},
		{"the link gone", func() { must(h.Remove(program)) }, &desired.Link{Path: program, Target: "kubelet-1"}, nil, true},
		{"another link", func() { h.Put("/opt/bin/kubelet-2", "2", 0o755) }, &desired.Link{Path: program, Target: "kubelet-2"}, nil, false},
	} {
		step.damage()
		repairs, d.err = nil, step.refuse
		if err := apply(step.want); !errors.Is(err, step.refuse) || !slices.Equal(repairs, []bool{step.repair}) {
			t.Errorf("%s: %v, repairs %v", step.name, err, repairs)
		}
	}
}

// sorting is a drainer that looks at what a run does.
type sorting struct {
	repairs func(converge.Disturbance)
	err     error
}

func (s *sorting) Drain(_ context.Context, by converge.Disturbance) error {
	s.repairs(by)
	return s.err
}

func (*sorting) Restore(context.Context, converge.Outcome) error { return nil }
