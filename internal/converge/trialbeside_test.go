package converge_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"

	"github.com/berth-dev/berth/internal/host/memory"
)

const newcomer = "newcomer.service"

// withNewcomer adds a unit that no contract before has had; kubelet comes after it where
// first is set.
func withNewcomer(first bool) func(*desired.State) {
	return func(s *desired.State) {
		s.Add(managed("/etc/systemd/system/"+newcomer, "[Service]\nExecStart=/bin/newcomer\n"),
			&desired.Unit{Name: newcomer, Activation: desired.Started})
		for _, r := range s.Resources {
			if u, ok := r.(*desired.Unit); ok && u.Name == "kubelet.service" && first {
				u.After = append(u.After, desired.UnitID(newcomer))
			}
		}
	}
}

// TestAUnitBesideATrial: a new unit that fails takes nothing back of what is on trial and
// holds, where the run goes on beside units that fail; the contract is not known to be good.
func TestAUnitBesideATrial(t *testing.T) {
	for name, c := range map[string]struct {
		w, is                        wish
		stops, first, hangs, crashes bool
		await                        error
	}{
		"holds":                            {w: newWish, is: newWish},
		"hangs":                            {w: newWish, is: newWish, hangs: true},
		"ends a moment later":              {w: newWish, is: newWish, crashes: true},
		"it stops with the run":            {w: newWish, is: goodWish, crashes: true, stops: true},
		"the run stops where a unit fails": {w: newWish, is: goodWish, stops: true},
		"what is on trial fails, too":      {w: badWish, is: goodWish},
		"what is on trial does not hold":   {w: newWish, is: goodWish, await: errors.New("not Ready")},
		"what is on trial comes after it":  {w: newWish, is: goodWish, first: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := fussy(t)
			h.Put("/bin/newcomer", "", 0o755)
			h.Behave(newcomer, func(memory.Start) memory.Outcome {
				if c.crashes {
					return memory.Outcome{}
				}
				return memory.Outcome{Status: 1, Hang: c.hangs}
			})
			st := c.w.state(t, withNewcomer(c.first))
			e := engine(h, &providers{}, func(o *converge.Options) {
				o.GoOn, o.UnitTimeout = !c.stops, 50*time.Millisecond
				o.Observer = func(s converge.Span) {
					if c.crashes && s.ID == desired.UnitID(newcomer) && !s.End.IsZero() {
						h.Crash(newcomer, 1)
					}
				}
				o.Trial = c.w.trial(t, func(tr *converge.Trial) {
					tr.Await = func(context.Context, *desired.State, trial.Standing) (string, error) { return "", c.await }
				})
			})
			_, err := e.Apply(t.Context(), st)
			_, back := errors.AsType[*converge.TrialError](err)
			if err == nil || back != (c.is == goodWish) {
				t.Fatal(err)
			}
			if got, _ := h.ReadFile(flags); string(got) != c.is.Kubelet {
				t.Errorf("kubelet's flags are %q", got)
			}
			if _, err := h.Lstat(noteFile); !errors.Is(err, fs.ErrNotExist) {
				t.Error("it is on trial", err)
			}
			if good, err := trial.Good(h, desired.OwnerAKS); err != nil || cmp.Diff(goodWish.contract(), *good) != "" {
				t.Error("another contract is the last good one", err)
			}
			if back {
				return
			}
			if u, ok := errors.AsType[*converge.UnitError](err); !ok || u.Unit != newcomer {
				t.Error(err)
			}
			c.crashes = false
			h.Behave(newcomer, nil)
			must(h.StopUnit(tctx, newcomer)) // one that hangs is still about to start
			if _, err := e.Apply(t.Context(), st); err != nil {
				t.Fatal(err)
			}
			if good, err := trial.Good(h, desired.OwnerAKS); err != nil || cmp.Diff(c.w.contract(), *good) != "" {
				t.Error("what is in force is not the last good one", err)
			}
		})
	}
}

// TestATrialAwaitsWhatItComesAfter: the bound of units that are not on trial is not for one
// that something on trial comes after.
func TestATrialAwaitsWhatItComesAfter(t *testing.T) {
	h := fussy(t)
	h.Put("/bin/newcomer", "", 0o755)
	h.Behave(newcomer, func(memory.Start) memory.Outcome { return memory.Outcome{Hang: true} })
	e := engine(h, &providers{}, func(o *converge.Options) {
		o.GoOn, o.UnitTimeout, o.Trial = true, 20*time.Millisecond, newWish.trial(t)
	})
	ended := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		_, err := e.Apply(ctx, newWish.state(t, withNewcomer(true)))
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatal("it did not wait:", err)
	case <-time.After(200 * time.Millisecond):
	}
	if _, err := h.Lstat(noteFile); err != nil {
		t.Error("it is not on trial", err)
	}
	stop()
	if _, ok := errors.AsType[*converge.TrialError](<-ended); !ok {
		t.Error("it is not taken back")
	}
	inForce(t, h, goodWish)
}

// TestWhatBrokeIsToldFirst: of several failures the one decides, and gives its words, that is of
// what was on trial: of its unit, or of the Node.
func TestWhatBrokeIsToldFirst(t *testing.T) {
	const theirs = "/etc/systemd/system/kubelet.service.d/99-theirs.conf"
	for name, c := range map[string]struct {
		starts bool
		words  string
	}{
		"unit": {false, "words of kubelet.service"},
		"Node": {true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := fussy(t)
			h.Put("/bin/newcomer", "", 0o755)
			h.Behave(newcomer, func(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} })
			h.Put(theirs, "[Service]\nEnvironment=X=1\n", 0o644)
			h.Behave("kubelet.service", func(memory.Start) memory.Outcome {
				if c.starts {
					return memory.Outcome{}
				}
				return memory.Outcome{Status: 1}
			})
			w := wish{goodWish.Kubelet, "version = 4\n"}
			e := engine(h, &providers{}, func(o *converge.Options) {
				o.GoOn, o.Trial = true, w.trial(t, func(tr *converge.Trial) {
					tr.Await = func(context.Context, *desired.State, trial.Standing) (string, error) {
						return "", errors.New("the Node is not Ready")
					}
				})
			})
			_, err := e.Apply(t.Context(), w.state(t, withNewcomer(false)))
			broken, ok := errors.AsType[*converge.TrialError](err)
			if !ok || cmp.Diff([]string{theirs}, broken.Foreign) != "" || !strings.Contains(broken.Words, c.words) || strings.Contains(broken.Words, newcomer) {
				t.Fatalf("%+v", err)
			}
			if a, ok := errors.AsType[*converge.ActionError](err); !ok || a.ID == desired.UnitID(newcomer) || !strings.Contains(err.Error(), newcomer) {
				t.Error(err)
			}
		})
	}
}
