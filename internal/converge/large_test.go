package converge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// Large files that the state gives are compared by content like small ones: as a
// trigger, as berth's own that goes, and as an original that comes back.
func TestLargeFiles(t *testing.T) {
	const p = "/etc/large"
	text := func(s string) string { return strings.Repeat(s, 1<<20+1) }
	unit := started("containerd.service", p)
	h := newMachine()
	h.Put(p, text("o"), 0o644)

	runs(t, h, sealed(t, unit, managed(p, text("a"))))
	converged(t, h, sealed(t, unit, managed(p, text("a"))))
	h.ForgetJobs()
	runs(t, h, sealed(t, unit, managed(p, text("b"))))
	converged(t, h, sealed(t, unit, managed(p, text("b"))))
	if got := joinJobs(h); got != "restart containerd.service\n" {
		t.Errorf("jobs %q", got)
	}
	plan := runs(t, h, sealed(t, unit))
	if diff := cmp.Diff([]string{"restore file:" + p, "restart unit:containerd.service"}, verbs(plan)); diff != "" {
		t.Errorf("%s%v", diff, plan.Kept)
	}
	has(t, h, p, text("o"))
	converged(t, h, sealed(t, unit))
}

// opened counts how often a file is opened.
type opened struct {
	host.Host
	path  string
	times int
}

func (o *opened) Open(p string) (host.ReadFile, error) {
	if p == o.path {
		o.times++
	}
	return o.Host.Open(p)
}

// Large programs are read when a run has ended, and then only where inode or time
// of change say that something happened. What they hold decides.
func TestLargePrograms(t *testing.T) {
	const p = "/opt/bin/kubelet"
	text := func(s string) string { return strings.Repeat(s, 1<<20+1) }
	s := sealed(t, started("kubelet.service", p), &desired.Artifact{Name: "kubelet", Files: []desired.ArtifactFile{{Path: p, Mode: 0o755}}})
	const restart, reads = "restart unit:kubelet.service", true
	for name, c := range map[string]struct {
		do    func(h *machine)
		early bool // the run before was killed before it could read the program
		want  string
		reads bool
	}{
		"nothing":                {do: func(*machine) {}},
		"nothing, early":         {do: func(*machine) {}, early: true},
		"touched":                {do: func(h *machine) { must(h.Chmod(p, 0o755)) }, reads: reads},
		"same bytes anew":        {do: func(h *machine) { h.Put(p, text("x"), 0o755) }, reads: reads},
		"other bytes":            {do: func(h *machine) { h.Put(p, text("y"), 0o755) }, want: restart, reads: reads},
		"other bytes, early":     {do: func(h *machine) { h.Put(p, text("y"), 0o755) }, early: true, want: restart},
		"overwritten":            {do: func(h *machine) { h.Overwrite(p, text("y")) }, want: restart, reads: reads},
		"overwritten, early":     {do: func(h *machine) { h.Overwrite(p, text("y")) }, early: true, want: restart},
		"ledger lost":            {do: func(h *machine) { must(h.Remove(ledgerFile)) }, reads: reads},
		"ledger lost, and other": {do: func(h *machine) { must(h.Remove(ledgerFile)); h.Overwrite(p, text("y")) }, want: restart, reads: reads},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.Put(p, text("x"), 0o755)
			h.Put("/usr/lib/systemd/system/kubelet.service", kubeletUnit, 0o644)
			runs(t, h, s)
			if !c.early {
				must(engine(h, &providers{}).Remember(t.Context(), s))
			}
			c.do(h)

			o := &opened{Host: h, path: p}
			plan, err := engine(o, &providers{}).Plan(t.Context(), s)
			must(err)
			if got := strings.Join(verbs(plan), "\n"); got != c.want {
				t.Errorf("plan %q, want %q", got, c.want)
			}
			if (o.times > 0) != c.reads || o.times > 1 {
				t.Errorf("the plan read the program %d times", o.times)
			}
			runs(t, h, s)
			must(engine(h, &providers{}).Remember(t.Context(), s))
			o.times = 0
			plan, err = engine(o, &providers{}).Plan(t.Context(), s)
			if err != nil || !plan.Empty() || o.times > 0 {
				t.Errorf("afterwards: %v, %v, read %d times", verbs(plan), err, o.times)
			}
			before := tree(h)
			must(engine(h, &providers{}).Remember(t.Context(), s))
			if diff := cmp.Diff(before, tree(h)); diff != "" {
				t.Errorf("a second time: %s", diff)
			}
		})
	}
}

// A withdrawal that restarts a unit, as it ran before, reads no program of it again.
func TestLargeProgramsWithdrawn(t *testing.T) {
	const p, config = "/usr/bin/containerd", "/etc/containerd/config.toml"
	h := newMachine()
	h.Put(p, strings.Repeat("x", 1<<20+1), 0o755)
	must(h.StartUnit(t.Context(), "containerd.service"))
	s := sealed(t, started("containerd.service", p, config), managed(config, "version = 3\n"),
		&desired.Artifact{Name: "containerd", Files: []desired.ArtifactFile{{Path: p, Mode: 0o755}}})
	runs(t, h, s)
	must(engine(h, &providers{}).Remember(t.Context(), s))
	h.ForgetJobs()
	o := &opened{Host: h, path: p}
	runs(t, o, sealed(t))
	if got := joinJobs(h); got != "restart containerd.service\n" || o.times > 0 {
		t.Errorf("jobs %q, read the program %d times", got, o.times)
	}
	converged(t, h, sealed(t))
}

// Killed anywhere, what reads the programs does its work the next time.
func TestRememberIsKilled(t *testing.T) {
	const p = "/opt/bin/kubelet"
	s := sealed(t, started("kubelet.service", p), &desired.Artifact{Name: "kubelet", Files: []desired.ArtifactFile{{Path: p, Mode: 0o755}}})
	n := 1
	for hit := true; hit; n++ {
		for _, cut := range []bool{false, true} {
			h := newMachine()
			h.Put(p, strings.Repeat("x", 1<<20+1), 0o755)
			h.Put("/usr/lib/systemd/system/kubelet.service", kubeletUnit, 0o644)
			runs(t, h, s)
			in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
			_ = engine(in, &providers{}).Remember(t.Context(), s)
			hit = in.Hit() != nil
			h.Kill()
			if cut {
				h.PowerCut(memory.LoseAll)
				h.Boot()
			}
			runs(t, h, s)
			must(engine(h, &providers{}).Remember(t.Context(), s))
			h.ForgetJobs()
			must(h.Chmod(p, 0o755))
			if runs(t, h, s); joinJobs(h) != "" {
				t.Errorf("stopped at %d, power cut %t: %s", n, cut, joinJobs(h))
			}
			for p := range h.Tree() {
				if strings.Contains(p, "/.berth.") {
					t.Errorf("stopped at %d, power cut %t: %s is left over", n, cut, p)
				}
			}
			converged(t, h, s)
		}
	}
	if n < 8 {
		t.Errorf("only %d effects", n)
	}
}
