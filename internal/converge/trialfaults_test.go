package converge_test

import (
	"errors"
	"strings"
	"syscall"
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

// attempt is a change on trial, and what it comes to undisturbed.
type attempt struct {
	name string
	w    wish
	end  wish
	edit func(*converge.Trial)
}

func attempts() []attempt {
	plain := func(*converge.Trial) {}
	both := wish{"A=2\n", "version = 4\n"}
	return []attempt{
		{"good", newWish, newWish, plain},
		{"good for both", both, both, plain},
		{"bad for kubelet", wish{"bad\n", "version = 4\n"}, goodWish, plain},
		{"bad for containerd", wish{"A=2\n", "bad\n"}, goodWish, plain},
		{"confirmed by a person", newWish, newWish, func(tr *converge.Trial) { tr.Within = time.Minute }},
	}
}

// try applies the change, and says the person's word where one is asked for. What
// is taken back is no error.
func (a attempt) try(t *testing.T, h *machine, on *effect.Injector) error {
	t.Helper()
	res, err := tried(t, on, a.w, a.edit).Apply(t.Context(), a.w.state(t))
	if err == nil && !res.Until.IsZero() {
		_, err = tried(t, on, a.w).Confirm(t.Context())
	}
	if e, ok := errors.AsType[*converge.TrialError](err); ok && e.Revert == nil && a.end == goodWish {
		return nil
	}
	return err
}

// effects counts those of an undisturbed trial, and checks what it comes to.
func (a attempt) effects(t *testing.T) int {
	t.Helper()
	h := fussy(t)
	counting := effect.Inject(h, nil)
	if err := a.try(t, h, counting); err != nil {
		t.Fatal(err)
	}
	inForce(t, h, a.end)
	if t.Failed() {
		t.FailNow()
	}
	return counting.Count()
}

// cut is a trial that a fault hits.
func (a attempt) cut(t *testing.T, plan effect.Plan) *machine {
	t.Helper()
	h := fussy(t)
	in := effect.Inject(h, plan)
	if err := a.try(t, h, in); in.Hit() == nil {
		t.Fatalf("no fault took place: %v", err)
	}
	return h
}

// settledTree is the tree of a machine on which a wish is in force.
func settledTree(t *testing.T, w wish) map[string]string {
	t.Helper()
	h := fussy(t)
	if w != goodWish {
		if _, err := w.apply(t, h); err != nil {
			t.Fatal(err)
		}
	}
	return onDisk(h)
}

// onDisk is the tree without what a boot takes, and without the ledger's next
// version, which a run that was cut off leaves to the next one that writes it.
func onDisk(h *machine) map[string]string {
	out := tree(h)
	delete(out, host.TempName(ledgerFile))
	for p := range out {
		if p == "/run" || strings.HasPrefix(p, "/run/") {
			delete(out, p)
		}
	}
	return out
}

// kept is the wish that counts as good.
func kept(t *testing.T, h *machine, of ...wish) wish {
	t.Helper()
	have, err := trial.Good(h, desired.OwnerAKS)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range of {
		if c := w.contract(); have.Same(&c) {
			return w
		}
	}
	t.Fatalf("kept as good: %+v", have)
	return wish{}
}

// Stopped dead at any effect, the change tried again comes to what it came to
// undisturbed; the last good contract applied by hand is in force.
func TestATrialIsKilledAnywhere(t *testing.T) {
	for _, a := range attempts() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			effects := a.effects(t)
			want := map[wish]map[string]string{a.end: settledTree(t, a.end), goodWish: settledTree(t, goodWish)}
			for n := 1; n <= effects; n += stride {
				for _, kind := range []effect.Kind{effect.StopBefore, effect.StopAfter} {
					for _, then := range []attempt{a, {name: "by hand", w: goodWish, end: goodWish, edit: func(*converge.Trial) {}}} {
						h := a.cut(t, effect.Plan{{At: n, Kind: kind}})
						h.Kill()
						if err := then.try(t, h, effect.Inject(h, nil)); err != nil {
							t.Fatalf("killed (%v) at effect %d, then %s: %v", kind, n, then.name, err)
						}
						inForce(t, h, then.end)
						if d := cmp.Diff(want[then.end], onDisk(h)); d != "" || t.Failed() {
							t.Fatalf("killed (%v) at effect %d, then %s: %s", kind, n, then.name, d)
						}
					}
				}
			}
			t.Logf("%d effects", effects)
		})
	}
}

// After a power cut at any effect, and a boot, one contract is in force as a whole:
// what restore makes of the files is what was kept as good, also where that is cut
// off itself.
func TestATrialLosesItsPower(t *testing.T) {
	for _, a := range attempts() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			effects := a.effects(t)
			want := map[wish]map[string]string{a.end: settledTree(t, a.end), goodWish: settledTree(t, goodWish)}
			for n := 1; n <= effects; n += stride {
				seeds := []uint64{memory.LoseAll, memory.NamesOnly, uint64(n) + 100}
				h := a.cut(t, effect.Plan{{At: n, Kind: effect.StopAfter}})
				h.PowerCut(seeds[n%3])
				h.Boot()
				if n%2 == 0 {
					_, _ = tried(t, effect.Inject(h, effect.Plan{{At: n % 40, Kind: effect.StopAfter}}), wish{}).Restore(t.Context())
					h.PowerCut(seeds[n/2%3])
					h.Boot()
				}
				if _, err := tried(t, h, wish{}).Restore(t.Context()); err != nil {
					t.Fatalf("cut at effect %d: %v", n, err)
				}
				w := kept(t, h, a.end, goodWish)
				for p, content := range map[string]string{flags: w.Kubelet, runtimeToml: w.Containerd} {
					if got, err := h.ReadFile(p); err != nil || string(got) != content {
						t.Fatalf("cut at effect %d, restored: %s is %q %v, want %q", n, p, got, err, content)
					}
				}
				if _, err := w.apply(t, h); err != nil {
					t.Fatalf("cut at effect %d, restored: %v", n, err)
				}
				inForce(t, h, w)
				if d := cmp.Diff(want[w], onDisk(h)); d != "" || t.Failed() {
					t.Fatalf("cut at effect %d, restored: %s", n, d)
				}
			}
			t.Logf("%d effects", effects)
		})
	}
}

// An error at any effect leaves one contract in force, or one that the next run
// brings in force.
func TestATrialMeetsAnError(t *testing.T) {
	for _, a := range attempts() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			effects := a.effects(t)
			want := settledTree(t, a.end)
			for n := 1; n <= effects; n += stride {
				errno := []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EPERM}[n%3]
				h := a.cut(t, effect.Plan{{At: n, Kind: effect.Fail, Err: errno}})
				if err := a.try(t, h, effect.Inject(h, nil)); err != nil {
					t.Fatalf("%v at effect %d, then: %v", errno, n, err)
				}
				inForce(t, h, a.end)
				if d := cmp.Diff(want, onDisk(h)); d != "" || t.Failed() {
					t.Fatalf("%v at effect %d, then: %s", errno, n, d)
				}
			}
			t.Logf("%d effects", effects)
		})
	}
}
