package converge_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge"
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

func (d *drainer) Restore(_ context.Context, broken bool) error {
	if broken {
		d.log = append(d.log, "stays")
	} else {
		d.log = append(d.log, "restore")
	}
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
	h.Settle()
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
	if log, err := drained(t, d, newWish); !errors.Is(err, d.err) || !slices.Equal(log, []string{"drain", "restore"}) {
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
