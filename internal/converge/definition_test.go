package converge_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	limits   = "/etc/systemd/system/containerd.service.d/limits.conf"
	override = "/etc/systemd/system/containerd.service"
)

// without is the sample state without some resources, and nothing comes after
// them.
func without(ids ...desired.ID) func(t *testing.T) *desired.State {
	gone := func(id desired.ID) bool { return slices.Contains(ids, id) }
	return func(t *testing.T) *desired.State {
		return sampleState(t, func(s *desired.State) {
			s.Resources = slices.DeleteFunc(s.Resources, func(r desired.Resource) bool { return gone(r.ID()) })
			for _, r := range s.Resources {
				r.Order().After = slices.DeleteFunc(r.Order().After, gone)
			}
		})
	}
}

// overridden is a node whose containerd runs with berth's own definition in place
// of the vendor's.
func overridden(t *testing.T) *machine {
	h := newMachine()
	runs(t, h, sampleState(t, func(s *desired.State) { s.Add(managed(override, containerdUnit+"#mine\n")) }))
	h.Flush()
	return h
}

// node is a node with what its units did so far.
func node(t *testing.T) *machine {
	h := newMachine()
	runs(t, h, sampleState(t))
	h.Flush()
	return h
}

// veteran is a node whose containerd ran before it was one.
func veteran(t *testing.T) *machine {
	h := newMachine()
	must(h.StartUnit(tctx, "containerd.service"))
	h.Advance(time.Minute)
	runs(t, h, sampleState(t))
	h.Flush()
	return h
}

// A part of a unit's definition that is no longer wanted goes in the same run in
// which the unit is restarted without it, and a second run has nothing to do.
func TestDefinitionGoes(t *testing.T) {
	trigger := managed("/etc/containerd/extra.toml", "a = 1\n")
	unit := func(triggers ...string) *desired.Unit { return started("containerd.service", triggers...) }
	restart := "restart unit:containerd.service"
	for name, c := range map[string]struct {
		before, after []desired.Resource
		prepare       func(h *machine)
		plan          []string
		jobs          string
	}{
		"drop-in": {
			before: []desired.Resource{unit(), managed(limits, "[Service]\nNice=1\n")}, after: []desired.Resource{unit()},
			plan: []string{"delete file:" + limits, "delete directory:/etc/systemd/system/containerd.service.d", restart},
			jobs: "restart containerd.service",
		},
		"override of the vendor's": {
			before: []desired.Resource{unit(), managed(override, containerdUnit+"#mine\n")}, after: []desired.Resource{unit()},
			plan: []string{"delete file:" + override, restart}, jobs: "restart containerd.service",
		},
		"override of the administrator's": {
			prepare: func(h *machine) { h.Put(override, containerdUnit+"#image\n", 0o644) },
			before:  []desired.Resource{unit(), managed(override, containerdUnit+"#mine\n")}, after: []desired.Resource{unit()},
			plan: []string{"restore file:" + override, restart}, jobs: "restart containerd.service",
		},
		"trigger": {
			before: []desired.Resource{unit(trigger.Path), trigger}, after: []desired.Resource{unit(trigger.Path)},
			plan: []string{"delete file:" + trigger.Path, restart}, jobs: "restart containerd.service",
		},
		"drop-in of a unit that is not wanted either": {
			before: []desired.Resource{unit(), managed(limits, "[Service]\nNice=1\n")},
			plan:   []string{"delete file:" + limits, "delete directory:/etc/systemd/system/containerd.service.d", "stop unit:containerd.service"},
			jobs:   "stop containerd.service",
		},
		"override of a unit that berth leaves as it is": {
			before: []desired.Resource{unit(), managed(override, containerdUnit+"#mine\n")},
			after:  []desired.Resource{&desired.Unit{Name: "containerd.service", Enablement: desired.Enabled}},
			plan:   []string{"delete file:" + override, "enable unit:containerd.service", "reload unit:containerd.service"},
		},
		"definition of a unit that is to stop": {
			before: []desired.Resource{unit(), managed(override, containerdUnit+"#mine\n")},
			after:  []desired.Resource{&desired.Unit{Name: "containerd.service", Enablement: desired.AnyEnablement, Activation: desired.Stopped}},
			plan:   []string{"delete file:" + override, "stop unit:containerd.service"}, jobs: "stop containerd.service",
		},
		"enablement": {
			before: []desired.Resource{&desired.Unit{Name: "containerd.service", Enablement: desired.Enabled, Activation: desired.Started}},
			after:  []desired.Resource{&desired.Unit{Name: "containerd.service", Enablement: desired.Disabled, Activation: desired.Started}},
			plan:   []string{"disable unit:containerd.service", "reload unit:containerd.service"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			if c.prepare != nil {
				c.prepare(h)
			}
			runs(t, h, sealed(t, c.before...))
			h.ForgetJobs()
			plan := runs(t, h, sealed(t, c.after...))
			if diff := cmp.Diff(c.plan, verbs(plan)); diff != "" {
				t.Error(diff)
			}
			if got := strings.TrimSpace(joinJobs(h)); got != c.jobs {
				t.Errorf("jobs %q, want %q", got, c.jobs)
			}
			if st, err := h.Unit(tctx, "containerd.service"); err != nil || st.NeedDaemonReload {
				t.Errorf("systemd holds an old definition: %+v, %v", st, err)
			}
			converged(t, h, sealed(t, c.after...))
		})
	}
}

// Wherever a run is cut off, systemd does not hold on to what went from the
// definition of a unit that is not berth's.
func TestDefinitionGoesKilledAnywhere(t *testing.T) {
	s := scenario{"", veteran, without(desired.FileID(limits), desired.UnitID("containerd.service")), nil, false}
	_, effects := undisturbed(t, s, 7)
	for n := 1; n <= effects; n++ {
		h := s.machine(t)
		disturb(t, h, s, effect.Plan{{At: n, Kind: effect.StopAfter}})
		h.Kill()
		again(t, h, s)
		if st, err := h.Unit(tctx, "containerd.service"); err != nil || st.NeedDaemonReload || st.ActiveState != "active" {
			t.Errorf("killed at effect %d: %+v, %v", n, st, err)
		}
	}
}

// A unit that is starting with a drop-in that goes is restarted, too.
func TestDropInGoesWhileTheUnitStarts(t *testing.T) {
	synctest.Test(t, dropInGoesWhileTheUnitStarts)
}

func dropInGoesWhileTheUnitStarts(t *testing.T) {
	h := newMachine()
	h.Behave("containerd.service", func(s memory.Start) memory.Outcome { return memory.Outcome{Slow: s.Verb == "start"} })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	unit := started("containerd.service")
	if _, err := engine(h, &providers{}).Apply(ctx, sealed(t, unit, managed(limits, "[Service]\nNice=1\n"))); err == nil {
		t.Fatal("the unit was ready at once")
	}
	runs(t, h, sealed(t, unit))
	if got := joinJobs(h); got != "start containerd.service\nrestart containerd.service\n" {
		t.Errorf("jobs %q", got)
	}
	converged(t, h, sealed(t, unit))
}

// The links that enable a template's instance go along with its definition, though the state
// speaks of the template, or of another instance, as disabled.
func TestLinksOfADefinitionThatGoes(t *testing.T) {
	const unit = "[Service]\nExecStart=/usr/bin/containerd\n[Install]\nAlias=al.service\nWantedBy=multi-user.target\nDefaultInstance=d\n"
	for name, then := range map[string]desired.Resource{
		"template": &desired.Unit{Name: "t@.service", Enablement: desired.Disabled},
		"instance": &desired.Unit{Name: "t@1.service", Enablement: desired.Disabled, Activation: desired.Stopped},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			before := others(h)
			runs(t, h, sealed(t, managed("/etc/systemd/system/t@.service", unit), &desired.Unit{Name: "t@.service", Enablement: desired.Enabled}))
			s := sealed(t, then)
			runs(t, h, s)
			converged(t, h, s)
			if diff := cmp.Diff(before, others(h)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
