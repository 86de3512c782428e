package converge_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
)

func within(d time.Duration) func(*converge.Trial) {
	return func(tr *converge.Trial) { tr.Within = d }
}

// A change that waits for a word waits on where a run without a way back comes to nothing, and
// ends with one that changes something, whatever becomes of that.
func TestNoRevertBesideAChangeThatWaits(t *testing.T) {
	third := wish{"A=3\n", "version = 3\n"}
	for name, tc := range map[string]struct {
		edit    func(*desired.State)
		probe   error
		waits   bool
		kubelet string
	}{
		"refused": {func(s *desired.State) {
			s.Add(&desired.Check{Name: "other", Host: "x", Port: 1, Timeout: time.Second})
		}, errAway, true, newWish.Kubelet},
		"failed": {func(s *desired.State) { s.Add(started("none.service")) }, nil, false, third.Kubelet},
		"done":   {func(*desired.State) {}, nil, false, third.Kubelet},
	} {
		t.Run(name, func(t *testing.T) {
			h := fussy(t)
			if _, err := newWish.apply(t, h, within(5*time.Minute)); err != nil {
				t.Fatal(err)
			}
			e := engine(h, &providers{probe: tc.probe}, func(o *converge.Options) {
				o.Trial = third.trial(t, func(tr *converge.Trial) { tr.NoRevert = true })
			})
			if _, err := e.Apply(t.Context(), third.state(t, tc.edit)); (err == nil) != (name == "done") {
				t.Error(err)
			}
			timer, err := h.Unit(tctx, "berth-revert.timer")
			must(err)
			if _, err := h.Lstat(noteFile); (err == nil) != tc.waits || (timer.ActiveState == "active") != tc.waits {
				t.Errorf("note %v, timer %s", err, timer.ActiveState)
			}
			if got, _ := h.ReadFile(flags); string(got) != tc.kubelet {
				t.Errorf("in force is %q", got)
			}
		})
	}
}

// Killed anywhere, such a run leaves no change to confirm that is not in force.
func TestNoRevertThatIsKilledBesideAChangeThatWaits(t *testing.T) {
	third := wish{"A=3\n", "version = 3\n"}
	for n, hit := 1, true; hit; n++ {
		h := fussy(t)
		if _, err := newWish.apply(t, h, within(5*time.Minute)); err != nil {
			t.Fatal(err)
		}
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		e := engine(in, &providers{}, func(o *converge.Options) {
			o.Trial = third.trial(t, func(tr *converge.Trial) { tr.NoRevert = true })
		})
		_, _ = e.Apply(t.Context(), third.state(t))
		hit = in.Hit() != nil
		h.Kill()
		_, err := engine(h, &providers{}, func(o *converge.Options) { o.Trial = newWish.trial(t) }).Confirm(t.Context())
		if got, _ := h.ReadFile(flags); err == nil && string(got) != newWish.Kubelet {
			t.Errorf("killed after effect %d: confirmed, and in force is %q", n, got)
		}
	}
}

// Who gives a person time to confirm a change that is in place already, gives that time: a run
// before had been cut off, or time was short.
func TestTimeToConfirmWhatIsInPlace(t *testing.T) {
	for name, before := range map[string]func(h *machine){
		"cut off": func(h *machine) {
			whole := effect.Record(fussy(t))
			_, err := newWish.apply(t, whole)
			must(err)
			for i, l := range whole.Lines() {
				if strings.Contains(l, goodFile) {
					_, err := newWish.apply(t, effect.Inject(h, effect.Plan{{At: i + 1, Kind: effect.StopBefore}}))
					if !errors.Is(err, effect.ErrStopped) {
						t.Fatal(err)
					}
					h.Kill()
					return
				}
			}
		},
		"one minute left": func(h *machine) {
			_, err := newWish.apply(t, h, within(5*time.Minute))
			must(err)
			h.Overwrite("/proc/uptime", "340.00 7.00\n")
		},
		"a boot, and the way back failed": func(h *machine) {
			_, err := newWish.apply(t, h, within(5*time.Minute))
			must(err)
			h.Boot()
			h.Advance(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := fussy(t)
			h.Put("/proc/uptime", "100.00 7.00\n", 0o444)
			before(h)
			res, err := newWish.apply(t, h, within(30*time.Minute))
			if err != nil || res.Left != "30m0s" {
				t.Fatalf("%v, left %q", err, res.Left)
			}
			tried := newWish.contract()
			if good, err := trial.Good(h, desired.OwnerAKS); err != nil || good.Same(&tried) {
				t.Errorf("it is good without a word: %v", err)
			}
			if _, err := engine(h, &providers{}, func(o *converge.Options) { o.Trial = newWish.trial(t) }).Confirm(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// To apply what waits without asking for a word gives the word.
func TestApplyWithoutTimeIsAWord(t *testing.T) {
	h := fussy(t)
	if _, err := newWish.apply(t, h, within(5*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := newWish.apply(t, h); err != nil {
		t.Fatal(err)
	}
	tried := newWish.contract()
	if good, err := trial.Good(h, desired.OwnerAKS); err != nil || !good.Same(&tried) {
		t.Errorf("it is not good: %v", err)
	}
	timer, err := h.Unit(tctx, "berth-revert.timer")
	must(err)
	if _, err := h.Lstat(noteFile); err == nil || timer.ActiveState == "active" {
		t.Errorf("note %v, timer %s", err, timer.ActiveState)
	}
}
