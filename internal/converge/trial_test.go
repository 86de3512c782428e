package converge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	flags       = "/etc/default/kubelet"
	runtimeToml = "/etc/containerd/config.toml"
	noteFile    = "/var/lib/berth/trial.json"
	goodFile    = "/var/lib/berth/contracts/aks"
	restore     = "/etc/systemd/system/berth-restore.service"
	wanted      = "/etc/systemd/system/multi-user.target.wants/berth-restore.service"
)

// wish is a contract of these tests: what kubelet and containerd are configured
// with.
type wish struct{ Kubelet, Containerd string }

var (
	goodWish = wish{"A=1\n", "version = 3\n"}
	newWish  = wish{"A=2\n", "version = 3\n"}
	badWish  = wish{"bad\n", "version = 3\n"}
)

func (w wish) state(t *testing.T, edit ...func(*desired.State)) *desired.State {
	t.Helper()
	return sampleState(t, append(edit, func(s *desired.State) {
		for _, r := range s.Resources {
			f, ok := r.(*desired.File)
			switch {
			case ok && f.Path == flags:
				f.Content = desired.Text(w.Kubelet)
			case ok && f.Path == runtimeToml:
				f.Content = desired.Text(w.Containerd)
			}
		}
	})...)
}

func (w wish) contract() trial.Contract {
	data, err := json.Marshal(w)
	must(err)
	return trial.Contract{Document: data, Facts: json.RawMessage(`{}`)}
}

// tried is an engine for a wish.
func tried(t *testing.T, h host.Host, w wish, edit ...func(*converge.Trial)) *converge.Engine {
	t.Helper()
	return engine(h, &providers{}, func(o *converge.Options) { o.Trial = w.trial(t, edit...) })
}

func (w wish) trial(t *testing.T, edit ...func(*converge.Trial)) *converge.Trial {
	t.Helper()
	tr := &converge.Trial{
		Contract: w.contract(),
		State: func(_ context.Context, c *trial.Contract) (*desired.State, error) {
			var w wish
			err := json.Unmarshal(c.Document, &w)
			return w.state(t), err
		},
		Stands: func(context.Context, *desired.State) trial.Standing {
			return trial.Standing{Healthy: true, Ready: true}
		},
		Await:        func(ctx context.Context, _ *desired.State, _ trial.Standing) (string, error) { return "", ctx.Err() },
		LastLogLines: func(_ context.Context, unit string) string { return "; its last lines:\n  words of " + unit },
		Kubelet:      "kubelet.service", Program: "/usr/local/bin/berth", First: []string{"first.service"},
		Elsewhere: map[string][]string{"containerd.service": {"/etc/containerd/conf.d"}},
	}
	for _, f := range edit {
		f(tr)
	}
	return tr
}

func (w wish) apply(t *testing.T, h host.Host, edit ...func(*converge.Trial)) (*converge.Result, error) {
	t.Helper()
	return tried(t, h, w, edit...).Apply(t.Context(), w.state(t))
}

// fussy is a machine whose kubelet and containerd do not start with what is bad.
func fussy(t *testing.T) *machine {
	t.Helper()
	h := newMachine()
	for unit, p := range map[string]string{"kubelet.service": flags, "containerd.service": runtimeToml} {
		h.Behave(unit, func(memory.Start) memory.Outcome {
			if data, _ := h.ReadFile(p); strings.Contains(string(data), "bad") {
				return memory.Outcome{Status: 1}
			}
			return memory.Outcome{}
		})
	}
	if _, err := goodWish.apply(t, h); err != nil {
		t.Fatal(err)
	}
	h.Flush()
	h.Advance(time.Minute)
	h.ForgetJobs()
	return h
}

// inForce fails unless a wish is in force and nothing is on trial.
func inForce(t *testing.T, h *machine, w wish) {
	t.Helper()
	for p, want := range map[string]string{flags: w.Kubelet, runtimeToml: w.Containerd} {
		if got, err := h.ReadFile(p); err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %q", p, got, err, want)
		}
	}
	for _, p := range []string{noteFile, restore, wanted, goodFile + ".tried", "/run/systemd/system/berth-revert.timer"} {
		if _, err := h.Lstat(p); err == nil {
			t.Errorf("%s is left", p)
		}
	}
	good, err := trial.Good(h, desired.OwnerAKS)
	want := w.contract()
	if err != nil || !good.Same(&want) {
		t.Errorf("kept as good: %+v %v", good, err)
	}
	for _, u := range []string{"kubelet.service", "containerd.service"} {
		if st, err := h.Unit(tctx, u); err != nil || st.ActiveState != "active" {
			t.Errorf("%s is %s, %v", u, st.ActiveState, err)
		}
	}
	plan, err := tried(t, h, w).Plan(t.Context(), w.state(t))
	if err != nil || !plan.Empty() {
		t.Errorf("planned: %v %v", verbs(plan), err)
	}
}

func jobsOf(h *machine) []string {
	out := []string{}
	for _, j := range h.Jobs() {
		out = append(out, j.String())
	}
	return out
}

// The first provisioning is no trial, and what it keeps is readable by root alone.
func TestTheFirstIsNoTrial(t *testing.T) {
	h := newMachine()
	res, err := goodWish.apply(t, h, func(tr *converge.Trial) {
		tr.Await = func(context.Context, *desired.State, trial.Standing) (string, error) { return "", errors.New("asked") }
	})
	if err != nil {
		t.Fatal(err)
	}
	inForce(t, h, goodWish)
	info, err := h.Lstat(goodFile)
	dir, err2 := h.Lstat("/var/lib/berth/contracts")
	if err != nil || err2 != nil || info.Mode != 0o600 || dir.Mode.Perm() != 0o700 {
		t.Errorf("%v %v: %v %v", info.Mode, dir.Mode, err, err2)
	}
	for _, s := range res.Timeline {
		if s.ID == "trial" {
			t.Error("it was a trial")
		}
	}
}

func TestAGoodChangeIsConfirmed(t *testing.T) {
	h := fussy(t)
	before := h.Now()
	if _, err := newWish.apply(t, h); err != nil {
		t.Fatal(err)
	}
	inForce(t, h, newWish)
	if d := cmp.Diff([]string{"restart kubelet.service"}, jobsOf(h)); d != "" {
		t.Error(d)
	}
	_ = before
}

// What does not start comes back: with the reason, the unit's own words, and no
// restart of what was well.
func TestABadChangeIsTakenBack(t *testing.T) {
	for unit, c := range map[string]struct {
		w    wish
		jobs []string
	}{
		"kubelet.service":    {badWish, []string{"restart kubelet.service (exit-code)", "start kubelet.service"}},
		"containerd.service": {wish{"A=1\n", "bad\n"}, []string{"restart containerd.service (exit-code)", "start containerd.service"}},
	} {
		t.Run(unit, func(t *testing.T) {
			h := fussy(t)
			_, err := c.w.apply(t, h)
			e, ok := errors.AsType[*converge.TrialError](err)
			if !ok || e.Revert != nil || e.Owner != desired.OwnerAKS {
				t.Fatal(err)
			}
			for _, says := range []string{unit, "words of " + unit, "the last good configuration is in force again"} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
			if a, ok := errors.AsType[*converge.ActionError](err); !ok || a.ID != desired.UnitID(unit) {
				t.Errorf("%#v", a)
			}
			inForce(t, h, goodWish)
			if d := cmp.Diff(c.jobs, jobsOf(h)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A unit that starts and ends a moment later has not held, nor has a node that
// does not stand as before.
func TestWhatDoesNotHoldIsTakenBack(t *testing.T) {
	t.Run("unit", func(t *testing.T) {
		h := fussy(t)
		_, err := newWish.apply(t, h, func(tr *converge.Trial) {
			tr.Await = func(context.Context, *desired.State, trial.Standing) (string, error) {
				h.Crash("kubelet.service", 7)
				return "", nil
			}
		})
		if !strings.Contains(fmt.Sprint(err), "did not stay up") {
			t.Fatal(err)
		}
		inForce(t, h, goodWish)
	})
	t.Run("ended well", func(t *testing.T) {
		h := fussy(t)
		_, err := newWish.apply(t, h, func(tr *converge.Trial) {
			tr.Await = func(context.Context, *desired.State, trial.Standing) (string, error) {
				return "", h.StopUnit(tctx, "kubelet.service")
			}
		})
		if !strings.Contains(fmt.Sprint(err), "did not stay up") {
			t.Fatal(err)
		}
		inForce(t, h, goodWish)
	})
	t.Run("node", func(t *testing.T) {
		h := fussy(t)
		gone := errors.New("the Node is not Ready")
		_, err := newWish.apply(t, h, func(tr *converge.Trial) {
			tr.Await = func(_ context.Context, _ *desired.State, before trial.Standing) (string, error) {
				if !before.Ready {
					t.Error("it was Ready before")
				}
				return "", gone
			}
		})
		if !errors.Is(err, gone) || strings.Contains(err.Error(), "words of") {
			t.Fatal(err)
		}
		inForce(t, h, goodWish)
	})
}

// An API server that is away takes nothing back; that nobody could look is said.
func TestWhatCantBeSeenIsARemark(t *testing.T) {
	h := fussy(t)
	res, err := newWish.apply(t, h, func(tr *converge.Trial) {
		tr.Await = func(context.Context, *desired.State, trial.Standing) (string, error) { return "nobody could see", nil }
	})
	if err != nil || !strings.Contains(strings.Join(res.Plan.Remarks, "\n"), "nobody could see") {
		t.Fatal(res.Plan.Remarks, err)
	}
	inForce(t, h, newWish)
}

func TestNoRevertLeavesWhatIsBroken(t *testing.T) {
	h := fussy(t)
	_, err := badWish.apply(t, h, func(tr *converge.Trial) { tr.NoRevert = true })
	if _, ok := errors.AsType[*converge.TrialError](err); ok || err == nil {
		t.Fatal(err)
	}
	if got, _ := h.ReadFile(flags); string(got) != "bad\n" {
		t.Errorf("%q", got)
	}
	if _, err := h.Lstat(noteFile); err == nil {
		t.Error("it is on trial")
	}
	if _, err := goodWish.apply(t, h); err != nil {
		t.Fatal(err)
	}
	inForce(t, h, goodWish)
}

// A run that is told to stop while it waits goes back, and keeps why it ended.
func TestToldToStopTakesBack(t *testing.T) {
	h := fussy(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("told to stop")
	_, err := tried(t, h, newWish, func(tr *converge.Trial) {
		tr.Await = func(ctx context.Context, _ *desired.State, _ trial.Standing) (string, error) {
			cancel(why)
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
	}).Apply(ctx, newWish.state(t))
	if e, ok := errors.AsType[*converge.TrialError](err); !ok || e.Revert != nil || !errors.Is(err, why) {
		t.Fatal(err)
	}
	inForce(t, h, goodWish)
}

// What broke through somebody else's file stays as it is: to go back would not help.
func TestOthersFilesAreNamed(t *testing.T) {
	const theirs = "/etc/systemd/system/kubelet.service.d/99-theirs.conf"
	h := fussy(t)
	h.Put(theirs, "[Service]\nEnvironment=X=1\n", 0o644)
	h.Behave("kubelet.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} })
	w := wish{goodWish.Kubelet, "version = 4\n"}
	_, err := w.apply(t, h)
	e, ok := errors.AsType[*converge.TrialError](err)
	if !ok || cmp.Diff([]string{theirs}, e.Foreign) != "" || !strings.Contains(err.Error(), theirs) {
		t.Fatal(err)
	}
	if got, _ := h.ReadFile(runtimeToml); string(got) != w.Containerd {
		t.Errorf("taken back: %q", got)
	}
	if _, err := h.Lstat(noteFile); err == nil {
		t.Error("it is still on trial")
	}
}

// Where their file and this run's change come together, the unit's own words decide.
func TestWordsNameTheFile(t *testing.T) {
	const theirs = "/etc/containerd/conf.d/x.toml"
	for name, c := range map[string]struct {
		words string
		alone bool
	}{
		"theirs": {"; its last lines:\n  failed to load " + theirs, true},
		"ours":   {"; its last lines:\n  failed to load " + runtimeToml, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := fussy(t)
			h.Put(theirs, "x", 0o644)
			w := wish{goodWish.Kubelet, "bad\n"}
			_, err := w.apply(t, h, func(tr *converge.Trial) {
				tr.LastLogLines = func(context.Context, string) string { return c.words }
			})
			e, ok := errors.AsType[*converge.TrialError](err)
			if !ok || (len(e.Foreign) > 0) != c.alone || e.Revert != nil {
				t.Fatal(err)
			}
		})
	}
}

// A name with which another begins is not named where that one is: a drop-in's path begins
// with its unit's.
func TestOneNameBeginsAnother(t *testing.T) {
	const definition, theirs = "/etc/systemd/system/kubelet.service", "/etc/systemd/system/kubelet.service.d/99-theirs.conf"
	for words, alone := range map[string]bool{
		"read " + theirs + ":2":                       true,
		"read " + definition:                          false,
		definition + ":7: beside " + theirs:           false,
		theirs + " is odd, and so is " + theirs:       true,
		"see " + theirs + ", not " + definition + ".": false,
	} {
		h := fussy(t)
		h.Put(theirs, "[Service]\nEnvironment=X=1\n", 0o644)
		h.Behave("kubelet.service", func(memory.Start) memory.Outcome {
			if text, _ := h.ReadFile(definition); string(text) != kubeletUnit {
				return memory.Outcome{Status: 1}
			}
			return memory.Outcome{}
		})
		_, err := tried(t, h, newWish, func(tr *converge.Trial) {
			tr.LastLogLines = func(context.Context, string) string { return words }
		}).Apply(t.Context(), newWish.state(t, func(s *desired.State) {
			for _, r := range s.Resources {
				if f, ok := r.(*desired.File); ok && f.Path == definition {
					f.Content = desired.Text(kubeletUnit + "# more\n")
				}
			}
		}))
		if e, ok := errors.AsType[*converge.TrialError](err); !ok || (len(e.Foreign) > 0) != alone || e.Revert != nil {
			t.Errorf("%s: %v", words, err)
		}
	}
}

// A way back that fails is told beside what broke, and stays owed.
func TestTheWayBackFails(t *testing.T) {
	h := fussy(t)
	broken := false
	h.Behave("kubelet.service", func(memory.Start) memory.Outcome {
		broken = true
		return memory.Outcome{Status: 1}
	})
	_, err := newWish.apply(t, h)
	e, ok := errors.AsType[*converge.TrialError](err)
	if !ok || e.Revert == nil || !broken || !strings.Contains(err.Error(), "failed, too") {
		t.Fatal(err)
	}
	if _, err := h.Lstat(noteFile); err != nil {
		t.Error("nothing is owed any more:", err)
	}
	h.Behave("kubelet.service", nil)
	if _, err := goodWish.apply(t, h); err != nil {
		t.Fatal(err)
	}
	inForce(t, h, goodWish)
}

// A person's word makes a change the last good one; without it the timer's verb, or
// the next boot, goes back.
func TestConfirmWithin(t *testing.T) {
	within := func(tr *converge.Trial) { tr.Within = 5 * time.Minute }
	wait := func(t *testing.T) *machine {
		h := fussy(t)
		h.Put("/proc/uptime", "100.00 7.00\n", 0o444)
		res, err := newWish.apply(t, h, within)
		if err != nil || res.Until.IsZero() || res.Left != "5m0s" {
			t.Fatal(res.Until, res.Left, err)
		}
		if st, err := h.Unit(tctx, "berth-revert.timer"); err != nil || st.ActiveState != "active" {
			t.Fatal(st.ActiveState, err)
		}
		return h
	}
	t.Run("confirmed", func(t *testing.T) {
		h := wait(t)
		if o, err := tried(t, h, wish{}).Confirm(t.Context()); err != nil || o != desired.OwnerAKS {
			t.Fatal(o, err)
		}
		inForce(t, h, newWish)
		if st, _ := h.Unit(tctx, "berth-revert.timer"); st.ActiveState == "active" {
			t.Error("the timer runs")
		}
	})
	t.Run("not confirmed", func(t *testing.T) {
		h := wait(t)
		if done, err := tried(t, h, wish{}).Revert(t.Context()); err != nil || !strings.Contains(done, "aks") {
			t.Fatal(done, err)
		}
		inForce(t, h, goodWish)
		var none *converge.NothingOnTrialError
		if _, err := tried(t, h, wish{}).Confirm(t.Context()); !errors.As(err, &none) {
			t.Error(err)
		}
	})
	for name, reboot := range reboots {
		t.Run(name, func(t *testing.T) {
			h := wait(t)
			reboot(h)
			var none *converge.NothingOnTrialError
			if _, err := tried(t, h, wish{}).Confirm(t.Context()); !errors.As(err, &none) {
				t.Error(err)
			}
			if done, err := tried(t, h, wish{}).Restore(t.Context()); err != nil || done == "" {
				t.Fatal(done, err)
			}
			if _, err := goodWish.apply(t, h); err != nil {
				t.Fatal(err)
			}
			inForce(t, h, goodWish)
		})
	}
	t.Run("no time left", func(t *testing.T) {
		h := fussy(t)
		_, err := newWish.apply(t, h, func(tr *converge.Trial) { tr.Within = time.Nanosecond })
		if !strings.Contains(fmt.Sprint(err), "had to be confirmed") {
			t.Fatal(err)
		}
		inForce(t, h, goodWish)
	})
	for name, by := range map[string]time.Duration{"the clock is set forward": time.Hour, "the clock is set back": -40 * 24 * time.Hour} {
		jumps := func(h *machine, within time.Duration) error {
			_, err := newWish.apply(t, h, func(tr *converge.Trial) {
				tr.Within, tr.Await = within, func(context.Context, *desired.State, trial.Standing) (string, error) { h.Advance(by); return "", nil }
			})
			return err
		}
		t.Run(name, func(t *testing.T) {
			h := fussy(t)
			if err := jumps(h, 5*time.Minute); err != nil {
				t.Fatal(err)
			}
			if o, err := tried(t, h, wish{}).Confirm(t.Context()); err != nil || o != desired.OwnerAKS {
				t.Fatal(o, err)
			}
			inForce(t, h, newWish)
			h = fussy(t)
			if err := jumps(h, time.Nanosecond); !strings.Contains(fmt.Sprint(err), "had to be confirmed") {
				t.Fatal(err)
			}
			inForce(t, h, goodWish)
		})
	}
	t.Run("another owner", func(t *testing.T) {
		h := wait(t)
		st := &desired.State{Owner: desired.OwnerOSC}
		st.Add(managed("/etc/x", "x"))
		must(st.Seal())
		var other *converge.OnTrialError
		if _, err := tried(t, h, wish{Kubelet: "osc"}).Apply(t.Context(), st); !errors.As(err, &other) {
			t.Error(err)
		}
		h.Advance(time.Hour) // the clock is set, and the timer knows better
		h.Put("/proc/uptime", "160.00 7.00\n", 0o444)
		if _, err := tried(t, h, wish{Kubelet: "osc"}).Apply(t.Context(), st); !errors.As(err, &other) || !strings.HasSuffix(err.Error(), "waits to be confirmed, within 4m0s") {
			t.Error(err)
		}
		var none *converge.NothingOnTrialError
		if o, err := tried(t, h, wish{}).Confirm(t.Context(), desired.OwnerOSC); !errors.As(err, &none) || o != "" {
			t.Error("another owner has confirmed it", o, err)
		}
		must(h.StopUnit(t.Context(), "berth-revert.timer")) // nobody goes back any more
		if _, err := tried(t, h, wish{Kubelet: "osc"}).Apply(t.Context(), st); err != nil {
			t.Error(err)
		}
		inForce(t, h, goodWish)
	})
	t.Run("nothing to go back to", func(t *testing.T) {
		h := newMachine()
		before := h.Tree("/etc")
		if _, err := newWish.apply(t, h, within); !errors.Is(err, converge.ErrNoWayBack) {
			t.Error(err)
		}
		if d := cmp.Diff(before, h.Tree("/etc")); d != "" {
			t.Error(d)
		}
	})
}

// halfway is a machine on which a run that tries newWish was killed when its files
// were in place.
func halfway(t *testing.T) *machine {
	t.Helper()
	whole := effect.Record(fussy(t))
	if _, err := newWish.apply(t, whole); err != nil {
		t.Fatal(err)
	}
	restart := slices.IndexFunc(whole.Effects(), func(e effect.Recorded) bool { return e.Op == "restart" })
	h := fussy(t)
	if _, err := newWish.apply(t, effect.Inject(h, effect.Plan{{At: restart + 1, Kind: effect.StopAfter}})); !errors.Is(err, effect.ErrStopped) {
		t.Fatal(err)
	}
	h.Kill()
	if got, _ := h.ReadFile(flags); string(got) != newWish.Kubelet {
		t.Fatalf("%q", got)
	}
	return h
}

// A trial that was cut off ends before another contract changes anything.
func TestAnotherOwnerEndsWhatWasCutOff(t *testing.T) {
	h := halfway(t)
	st := &desired.State{Owner: desired.OwnerOSC}
	st.Add(managed("/etc/x", "x"))
	must(st.Seal())
	if _, err := tried(t, h, wish{Kubelet: "osc"}).Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	inForce(t, h, goodWish)
	if got, err := h.ReadFile("/etc/x"); string(got) != "x" {
		t.Errorf("%q %v", got, err)
	}
}

// --no-revert ends it, too: nothing goes back at the next boot.
func TestNoRevertEndsWhatWasCutOff(t *testing.T) {
	h := halfway(t)
	if _, err := newWish.apply(t, h, func(tr *converge.Trial) { tr.NoRevert = true }); err != nil {
		t.Fatal(err)
	}
	inForce(t, h, newWish)
}

// What can't be translated any more can't come back; the change is made all the
// same, and that is said.
func TestNoWayBackIsSaid(t *testing.T) {
	h := fussy(t)
	refused := func(tr *converge.Trial) {
		tr.State = func(context.Context, *trial.Contract) (*desired.State, error) {
			return nil, errors.New("refused by this version")
		}
	}
	res, err := newWish.apply(t, h, refused)
	if err != nil || !strings.Contains(strings.Join(res.Plan.Remarks, "\n"), "refused by this version") {
		t.Fatal(res.Plan.Remarks, err)
	}
	inForce(t, h, newWish)
}

// A service that comes and goes does not run well: what is changed then is no trial,
// and is one when it has stayed up.
func TestWhatComesAndGoesIsNoTrial(t *testing.T) {
	restarts := func(t *testing.T, w wish) *desired.State {
		st := w.state(t)
		st.Lookup("file:/etc/systemd/system/kubelet.service").(*desired.File).Content = desired.Text(kubeletUnit + "[Service]\nRestart=always\n")
		return st
	}
	for stayed, trials := range map[time.Duration]bool{time.Second: false, 10 * time.Second: true} {
		h := newMachine()
		if _, err := tried(t, h, goodWish).Apply(t.Context(), restarts(t, goodWish)); err != nil {
			t.Fatal(err)
		}
		h.Crash("kubelet.service", 1)
		must(h.Sleep(t.Context(), time.Second))
		if st, err := h.Unit(t.Context(), "kubelet.service"); err != nil || st.ActiveState != "active" || st.NRestarts != 1 {
			t.Fatal(st, err)
		}
		h.Advance(stayed)
		res, err := tried(t, h, newWish).Apply(t.Context(), restarts(t, newWish))
		if err != nil {
			t.Fatal(err)
		}
		tries := slices.ContainsFunc(res.Timeline, func(s converge.Span) bool { return s.ID == "trial" })
		if tries != trials {
			t.Errorf("up for %s: a trial %v", stayed, tries)
		}
	}
}

// reboots are ways in which a machine restarts. The boot ID and /run stay where userspace
// alone does.
var reboots = map[string]func(*machine){
	"rebooted":      func(h *machine) { h.Boot() },
	"soft-rebooted": func(h *machine) { h.SoftReboot() },
}

// TestOneshotsRunAgain: what has run to its end, and what a condition kept from running, is done
// for this boot alone, also where userspace alone starts anew.
func TestOneshotsRunAgain(t *testing.T) {
	units := map[string]string{
		"job.service":  "[Service]\nType=oneshot\nExecStart=/usr/bin/w\n",
		"skip.service": "[Unit]\nConditionPathExists=/nowhere\n[Service]\nExecStart=/usr/bin/w\n",
	}
	for name, reboot := range reboots {
		for unit, text := range units {
			t.Run(name+"/"+unit, func(t *testing.T) {
				h := newMachine()
				h.Put("/usr/bin/w", "w", 0o755)
				st := sealed(t, managed("/etc/systemd/system/"+unit, text), started(unit))
				runs(t, h, st)
				converged(t, h, st)
				reboot(h)
				if plan := runs(t, h, st); !slices.Contains(verbs(plan), "start unit:"+unit) {
					t.Errorf("planned %v", verbs(plan))
				}
				converged(t, h, st)
			})
		}
	}
}

// Restore at boot changes nothing in the boot of the trial. Later it has systemd restart what runs
// already with what was on trial: kubelet here, which waits for no other unit in this model.
func TestRestoreRestartsWhatStartedBefore(t *testing.T) {
	for name, reboot := range reboots {
		t.Run(name, func(t *testing.T) {
			h := fussy(t)
			if _, err := newWish.apply(t, h, func(tr *converge.Trial) { tr.Within = time.Minute }); err != nil {
				t.Fatal(err)
			}
			if done, err := tried(t, h, wish{}).Restore(t.Context()); err != nil || done != "" {
				t.Fatal(done, err)
			}
			reboot(h)
			h.ForgetJobs()
			if _, err := tried(t, h, wish{}).Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, _ := h.ReadFile(flags); string(got) != goodWish.Kubelet || strings.Join(jobsOf(h), " ") != "restart kubelet.service" {
				t.Errorf("%q %v", got, jobsOf(h))
			}
			converged(t, h, goodWish.state(t))
		})
	}
}

// Restore at boot has systemd start what the boot does not, since the change had dropped it.
func TestRestoreStartsWhatTheChangeDropped(t *testing.T) {
	const extra = "extra.service"
	mask := &desired.Link{Path: "/etc/systemd/system/" + extra, Target: "/dev/null"}
	for name, edit := range map[string]func(*desired.State){
		"dropped": func(*desired.State) {},
		"masked": func(s *desired.State) {
			s.Add(mask, &desired.Unit{Base: desired.Base{After: []desired.ID{mask.ID()}}, Name: extra, Activation: desired.Stopped})
		},
	} {
		t.Run(name, func(t *testing.T) { restoresExtra(t, extra, newWish.state(t, edit)) })
	}
}

// What starts before the way back, as a socket or the network does, starts anew with what was good,
// or reads that again.
func TestRestoreOfWhatStartsEarly(t *testing.T) {
	const early, conf = "early.service", "/etc/early.conf"
	for job, unit := range map[string]*desired.Unit{
		"restart": {Name: early, Activation: desired.Started, Triggers: []string{conf}},
		"reload":  {Name: early, Activation: desired.Started, ReloadTriggers: []string{conf}},
	} {
		t.Run(job, func(t *testing.T) {
			h := newMachine()
			h.Put("/usr/lib/systemd/system/"+early, "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/containerd\nExecReload=/usr/bin/containerd\n", 0o644)
			h.PutLink("/usr/lib/systemd/system/"+early, "/etc/systemd/system/multi-user.target.wants/"+early, 0)
			must(h.DaemonReload(tctx))
			with := func(text string) *desired.State {
				return goodWish.state(t, func(s *desired.State) {
					u := *unit
					u.After = []desired.ID{desired.FileID(conf)}
					s.Add(managed(conf, text), &u)
				})
			}
			e := func(w wish, within time.Duration) *converge.Engine {
				return tried(t, h, w, func(tr *converge.Trial) {
					tr.State = func(context.Context, *trial.Contract) (*desired.State, error) { return with("good"), nil }
					tr.Within = within
				})
			}
			if _, err := e(goodWish, 0).Apply(t.Context(), with("good")); err != nil {
				t.Fatal(err)
			}
			h.Flush()
			h.Advance(time.Minute)
			if _, err := e(newWish, time.Minute).Apply(t.Context(), with("bad")); err != nil {
				t.Fatal(err)
			}
			h.Boot()
			h.Advance(time.Second)
			h.ForgetJobs()
			if _, err := e(wish{}, 0).Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Join(jobsOf(h), " "), job+" "+early; got != want {
				t.Errorf("jobs %q, want %q", got, want)
			}
			converged(t, h, with("good"))
		})
	}
}

func restoresExtra(t *testing.T, extra string, change *desired.State) {
	t.Helper()
	good := goodWish.state(t, func(s *desired.State) {
		s.Add(managed("/etc/systemd/system/"+extra, "[Service]\nExecStart=/usr/bin/w\n[Install]\nWantedBy=multi-user.target\n"),
			&desired.Unit{Base: desired.Base{After: []desired.ID{desired.FileID("/etc/systemd/system/" + extra)}}, Name: extra,
				Enablement: desired.Enabled, Activation: desired.Started})
	})
	h := newMachine()
	h.Put("/usr/bin/w", "w", 0o755)
	e := func(w wish) *converge.Engine {
		return tried(t, h, w, func(tr *converge.Trial) {
			tr.State = func(context.Context, *trial.Contract) (*desired.State, error) { return good, nil }
			tr.Within = time.Minute
			if w == goodWish {
				tr.Within = 0
			}
		})
	}
	if _, err := e(goodWish).Apply(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	h.Flush()
	h.Advance(time.Minute)
	if _, err := e(newWish).Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	h.Boot()
	h.ForgetJobs()
	if st, err := h.Unit(tctx, extra); err != nil || st.ActiveState != "inactive" {
		t.Fatalf("it is %s, %v", st.ActiveState, err)
	}
	if _, err := e(wish{}).Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st, err := h.Unit(tctx, extra); err != nil || st.ActiveState != "active" || strings.Join(jobsOf(h), " ") != "start "+extra+" restart kubelet.service" {
		t.Errorf("it is %s, jobs %v, %v", st.ActiveState, jobsOf(h), err)
	}
}

// A note of a berth that did not tell one run of userspace from another holds for its
// boot.
func TestNoteWithoutUserspace(t *testing.T) {
	h := fussy(t)
	if _, err := newWish.apply(t, h, func(tr *converge.Trial) { tr.Within = time.Minute }); err != nil {
		t.Fatal(err)
	}
	n, err := trial.Load(h)
	must(err)
	n.Userspace = ""
	must(n.Save(h))
	if _, err := tried(t, h, wish{}).Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	inForce(t, h, newWish)
}

// An owner that asks for nothing any more has no last good contract.
func TestWithdrawnIsForgotten(t *testing.T) {
	h := fussy(t)
	if _, err := engine(h, &providers{}).Apply(t.Context(), &desired.State{Owner: desired.OwnerAKS}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Lstat(goodFile); err == nil {
		t.Error("its contract is kept")
	}
}

// A note that says nothing, or of a contract to which nobody can go back, is in nobody's
// way: what is asked for is done, and the plan says what is not known.
func TestDamagedTrial(t *testing.T) {
	other := func(h *machine) (*converge.Result, error) {
		st := &desired.State{Owner: desired.OwnerOSC}
		st.Add(managed("/etc/x", "x"))
		must(st.Seal())
		return tried(t, h, wish{Kubelet: "osc"}).Apply(t.Context(), st)
	}
	own := func(h *machine) (*converge.Result, error) { return newWish.apply(t, h) }
	for name, c := range map[string]struct {
		damage func(h *machine)
		apply  func(h *machine) (*converge.Result, error)
	}{
		"emptied":                 {func(h *machine) { h.Overwrite(noteFile, "") }, own},
		"cut":                     {func(h *machine) { h.Overwrite(noteFile, `{"owner":"a`) }, own},
		"says nothing":            {func(h *machine) { h.Overwrite(noteFile, "{}") }, own},
		"another owner, emptied":  {func(h *machine) { h.Overwrite(noteFile, "") }, other},
		"another owner, no way":   {func(h *machine) { must(h.Remove("/var/lib/berth/contracts/aks")) }, other},
		"another owner, way torn": {func(h *machine) { h.Overwrite("/var/lib/berth/contracts/aks", "{") }, other},
	} {
		t.Run(name, func(t *testing.T) {
			h := halfway(t)
			c.damage(h)
			res, err := c.apply(h)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(fmt.Sprint(res.Plan.Remarks), "not taken back") {
				t.Errorf("remarks %q", res.Plan.Remarks)
			}
			if _, err := h.Lstat(noteFile); err == nil {
				t.Error("it is still on trial")
			}
		})
	}
}
