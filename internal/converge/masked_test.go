package converge_test

import (
	"context"
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
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A unit of somebody else that needs one which is not to run stays down with it, and the
// run says so; what only belongs to it comes back.
func TestNeedsAMaskedUnit(t *testing.T) {
	for _, tries := range []bool{false, true} {
		t.Run(fmt.Sprintf("trial: %v", tries), func(t *testing.T) { needsAMaskedUnit(t, tries) })
	}
}

// TestConsequenceIsAwaited: what systemd starts again along with what a run restarts is up when
// the run ends, and one that does not start, or is not up when the time for units is over, is
// its error.
func TestConsequenceIsAwaited(t *testing.T) {
	for name, outcome := range map[string]memory.Outcome{"slow": {Slow: true}, "fails": {Status: 1}, "hangs": {Hang: true}} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			const user = "user.service"
			h.Put("/usr/lib/systemd/system/"+user, "[Unit]\nRequires=w.service\nAfter=w.service\n[Service]\nType=exec\nExecStart=/usr/bin/containerd\n", 0o644)
			st := func(nice string) *desired.State {
				return sealed(t, managed("/etc/systemd/system/w.service", "[Service]\nExecStart=/usr/bin/containerd\nNice="+nice+"\n"), started("w.service"))
			}
			runs(t, h, st("1"))
			must(h.StartUnit(t.Context(), user))
			h.Behave(user, func(memory.Start) memory.Outcome { return outcome })
			bounded := func(o *converge.Options) { o.UnitTimeout = 50 * time.Millisecond }
			_, err := engine(h, &providers{}, bounded).Apply(t.Context(), st("2"))
			now, _ := h.Unit(t.Context(), user)
			if ok := name == "slow"; ok != (err == nil) || ok != (now.ActiveState == "active") || !ok && !strings.Contains(err.Error(), user) {
				t.Errorf("%s is %s, %v", user, now.ActiveState, err)
			}
		})
	}
}

func needsAMaskedUnit(t *testing.T, onTrial bool) {
	h := newMachine()
	for name, unit := range map[string]string{"base": "", "user": "[Unit]\nRequires=base.service\nAfter=base.service\n", "friend": "[Unit]\nPartOf=base.service\n"} {
		h.Put("/usr/lib/systemd/system/"+name+".service", unit+"[Service]\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	}
	if err := errors.Join(h.DaemonReload(t.Context()), h.StartUnit(t.Context(), "user.service"), h.StartUnit(t.Context(), "friend.service")); err != nil {
		t.Fatal(err)
	}
	h.PutLink("/usr/lib/systemd/system/user.service", "/etc/systemd/system/multi-user.target.wants/user.service", 0)
	mask := &desired.Link{Path: "/etc/systemd/system/base.service", Target: "/dev/null"}
	masked := sealed(t, mask, &desired.Unit{Base: desired.Base{After: []desired.ID{mask.ID()}}, Name: "base.service", Activation: desired.Stopped})
	e := func(w wish) *converge.Engine {
		return engine(h, &providers{}, func(o *converge.Options) {
			if onTrial {
				o.Trial = w.trial(t, func(tr *converge.Trial) {
					tr.State = func(context.Context, *trial.Contract) (*desired.State, error) { return sealed(t), nil }
				})
			}
		})
	}
	if _, err := e(goodWish).Apply(t.Context(), sealed(t, managed("/etc/first", ""))); err != nil {
		t.Fatal(err)
	}
	h.Advance(time.Minute)
	res, err := e(newWish).Apply(t.Context(), masked)
	if err != nil {
		t.Fatal(err)
	}
	tries := slices.ContainsFunc(res.Timeline, func(s converge.Span) bool { return s.ID == "trial" })
	if tries != onTrial {
		t.Errorf("a trial: %v", tries)
	}
	if !slices.ContainsFunc(res.Plan.Remarks, func(r string) bool { return strings.Contains(r, "user.service stays stopped: it needs base.service") }) {
		t.Errorf("remarks: %q", res.Plan.Remarks)
	}
	for name, want := range map[string]string{"base.service": "inactive", "user.service": "inactive", "friend.service": "active"} {
		if st, err := h.Unit(t.Context(), name); err != nil || st.ActiveState != want {
			t.Errorf("%s is %s, %v", name, st.ActiveState, err)
		}
	}
	converged(t, h, masked)
}

// A unit that ran masked before berth runs masked when nothing wants it otherwise any more, or
// stays down where berth stopped it: nobody can start it.
func TestMaskComesBack(t *testing.T) {
	const vendor, mask = "/usr/lib/systemd/system/v.service", "/etc/systemd/system/v.service"
	unit := func(a desired.Activation) *desired.Unit {
		return &desired.Unit{Name: "v.service", Enablement: desired.Enabled, Activation: a}
	}
	ours := managed(mask, "[Service]\nExecStart=/usr/bin/containerd ours\n[Install]\nWantedBy=multi-user.target\n")
	for name, c := range map[string]struct {
		want []desired.Resource
		ends string
		kept int
	}{
		"started":                 {[]desired.Resource{unit(desired.Started)}, "active", 0},
		"stopped":                 {[]desired.Resource{unit(desired.Stopped)}, "inactive", 1},
		"with another definition": {[]desired.Resource{unit(desired.Started), ours}, "inactive", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.Put(vendor, "[Service]\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n", 0o644)
			must(errors.Join(h.DaemonReload(tctx), h.StartUnit(tctx, "v.service")))
			h.PutLink("/dev/null", mask, 0)
			must(h.DaemonReload(tctx))
			before := others(h)
			s := sealed(t, c.want...)
			runs(t, h, s)
			converged(t, h, s)
			if p := runs(t, h, sealed(t)); len(p.Kept) != c.kept {
				t.Errorf("kept %q", p.Kept)
			}
			converged(t, h, sealed(t))
			if diff := cmp.Diff(before, others(h)); diff != "" {
				t.Error(diff)
			}
			if st, err := h.Unit(tctx, "v.service"); err != nil || st.ActiveState != c.ends || st.LoadState != "masked" {
				t.Errorf("it is %s, %s, %v", st.LoadState, st.ActiveState, err)
			}
		})
	}
}

// A mask that was there before berth, or that somebody put in place of berth's definition or
// before all others, gives way where the unit is wanted with another definition: one run starts
// it with that, wherever a run before was killed. One that would outlive a boot comes back for
// its maker when nobody wants the unit.
func TestMaskGivesWayToAnotherDefinition(t *testing.T) {
	const vendor, mask = "/usr/lib/systemd/system/v.service", "/etc/systemd/system/v.service"
	unit := &desired.Unit{Name: "v.service", Enablement: desired.Enabled, Activation: desired.Started}
	ours := managed(mask, "[Service]\nExecStart=/usr/bin/containerd ours\n[Install]\nWantedBy=multi-user.target\n")
	nothing := func(*machine) {}
	stop := func(h *machine) { must(h.StopUnit(tctx, unit.Name)) }
	put := func(h *machine) { h.PutLink("/dev/null", mask, 0); must(h.DaemonReload(tctx)) }
	untilBoot := func(h *machine) {
		h.PutLink("/dev/null", "/run/systemd/system/v.service", 0)
		must(h.DaemonReload(tctx))
	}
	for name, c := range map[string]struct{ before, then func(h *machine) }{
		"there before berth":           {put, nothing},
		"there before, and stopped":    {put, stop},
		"there before, and again":      {put, put},
		"there before, ours gone":      {put, func(h *machine) { must(h.Remove(mask)) }},
		"in place of ours":             {nothing, put},
		"in place of ours, stopped":    {nothing, func(h *machine) { stop(h); put(h) }},
		"until the next boot":          {nothing, untilBoot},
		"until the next boot, stopped": {nothing, func(h *machine) { stop(h); untilBoot(h) }},
	} {
		t.Run(name, func(t *testing.T) {
			for n, hit := 0, true; hit; n++ {
				h := newMachine()
				h.Put(vendor, "[Service]\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n", 0o644)
				c.before(h)
				before := others(h)
				runs(t, h, sealed(t, ours, unit))
				h.Advance(time.Minute)
				c.then(h)
				if target, err := h.Readlink(mask); err == nil {
					before[mask] = "Lrwxrwxrwx 0:0 -> " + target
				}
				if n > 0 {
					in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
					_, _ = engine(in, &providers{}).Apply(t.Context(), sealed(t, unit))
					hit = in.Hit() != nil
					h.Kill()
				}
				runs(t, h, sealed(t, unit))
				converged(t, h, sealed(t, unit))
				if st, err := h.Unit(tctx, unit.Name); err != nil || st.ActiveState != "active" || st.LoadState != "loaded" || !strings.HasSuffix(st.FragmentPath, strings.TrimPrefix(vendor, "/usr")) {
					t.Fatalf("killed at effect %d: it is %s, %s, with %s, %v", n, st.LoadState, st.ActiveState, st.FragmentPath, err)
				}
				runs(t, h, sealed(t))
				converged(t, h, sealed(t))
				after := others(h)
				delete(after, "/run/systemd") // of whoever put the mask there
				delete(after, "/run/systemd/system")
				if diff := cmp.Diff(before, after); diff != "" {
					t.Fatalf("killed at effect %d, withdrawn: %s", n, diff)
				}
			}
		})
	}
}

// A unit that ran before berth runs again when the last thing goes that berth made of it, be that
// its definition, long after the document has stopped speaking of the unit.
func TestDefinitionOutlivesItsUnit(t *testing.T) {
	for name, service := range map[string]string{
		"oneshot": "Type=oneshot\nExecStart=/usr/bin/containerd ours\n",
		"stays":   "Type=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/containerd ours\n",
		"runs":    "ExecStart=/usr/bin/containerd ours\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.Put("/usr/lib/systemd/system/v.service", "[Service]\nExecStart=/usr/bin/containerd\n", 0o644)
			must(errors.Join(h.DaemonReload(tctx), h.StartUnit(tctx, "v.service")))
			ours := managed("/etc/systemd/system/v.service", "[Service]\n"+service)
			for _, want := range [][]desired.Resource{{ours, started("v.service")}, {ours}, nil} {
				runs(t, h, sealed(t, want...))
				converged(t, h, sealed(t, want...))
				if len(want) == 1 { // nobody asks for it now: it may be stopped
					must(h.StopUnit(tctx, "v.service"))
					converged(t, h, sealed(t, want...))
				}
			}
			st, err := h.Unit(tctx, "v.service")
			if err != nil || st.ActiveState != "active" || strings.HasPrefix(st.FragmentPath, "/etc") {
				t.Errorf("%s of %s, %v", st.ActiveState, st.FragmentPath, err)
			}
			if got := h.Jobs(); len(got) < 3 || got[len(got)-1].Definition != got[0].Definition {
				t.Errorf("it does not run with what it ran with: %q", joinJobs(h))
			}
		})
	}
}

// Wherever the run is cut off that drops a unit and changes its definition, the next one leaves it
// as an undisturbed one does.
func TestDefinitionOutlivesItsUnitCutOff(t *testing.T) {
	ours := func(nice string) *desired.File {
		return managed("/etc/systemd/system/v.service", "[Service]\nExecStart=/usr/bin/containerd ours\nNice="+nice+"\n")
	}
	for n, hit := 0, true; hit; n++ {
		h := newMachine()
		h.Put("/usr/lib/systemd/system/v.service", "[Service]\nExecStart=/usr/bin/containerd\n", 0o644)
		must(errors.Join(h.DaemonReload(tctx), h.StartUnit(tctx, "v.service")))
		runs(t, h, sealed(t, ours("1"), started("v.service")))
		for i := range 2 { // cut off twice
			in := effect.Inject(h, effect.Plan{{At: n + i, Kind: effect.StopAfter}})
			if n > 0 {
				_, _ = engine(in, &providers{}).Apply(t.Context(), sealed(t, ours("2")))
				hit = in.Hit() != nil
				h.Kill()
			}
		}
		runs(t, h, sealed(t, ours("2")))
		converged(t, h, sealed(t, ours("2")))
		jobs := h.Jobs()
		last := jobs[len(jobs)-1]
		st, err := h.Unit(tctx, "v.service")
		if err != nil || st.ActiveState != "active" || last.Definition == jobs[1].Definition {
			t.Errorf("killed at effect %d: %s, %v; jobs %q", n, st.ActiveState, err, joinJobs(h))
		}
		runs(t, h, sealed(t))
		if jobs = h.Jobs(); jobs[len(jobs)-1].Definition != jobs[0].Definition {
			t.Errorf("killed at effect %d: in the end it does not run with what it ran with: %q", n, joinJobs(h))
		}
	}
}
