package converge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const flagsFile = "/etc/default/kubelet"

// flagged is kubelet with a line that it reads and one that it has no use for.
func flagged(t *testing.T, flags, labels string) *desired.State {
	u := started("kubelet.service", flagsFile)
	u.Unread = map[string][]string{flagsFile: {`(?m)^LABELS=.*\n`}}
	return sealed(t, u, managed(flagsFile, "FLAGS="+flags+"\nLABELS="+labels+"\n"))
}

// A change of lines that a unit has no use for restarts nothing, also where a boot
// took the stamp away; a change of others does.
func TestUnreadLines(t *testing.T) {
	kubelet := func() *memory.Host {
		h := newMachine()
		h.Put("/etc/systemd/system/kubelet.service", kubeletUnit, 0o644)
		runs(t, h, flagged(t, "1", "a"))
		h.Flush()
		return h
	}
	for name, c := range map[string]struct {
		arrange func(h *memory.Host)
		then    *desired.State
		want    []string
	}{
		"label":             {func(*memory.Host) {}, flagged(t, "1", "b"), []string{"update file:" + flagsFile}},
		"flag":              {func(*memory.Host) {}, flagged(t, "2", "b"), []string{"update file:" + flagsFile, "restart unit:kubelet.service"}},
		"label, after boot": {reboot, flagged(t, "1", "b"), []string{"update file:" + flagsFile}},
		"flag, after boot":  {reboot, flagged(t, "2", "a"), []string{"update file:" + flagsFile, "restart unit:kubelet.service"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := kubelet()
			c.arrange(h)
			if d := cmp.Diff(c.want, verbs(runs(t, h, c.then))); d != "" {
				t.Error(d)
			}
			converged(t, h, c.then)
			want := len(h.Jobs())
			for n, hit := 1, true; hit; n++ {
				h := kubelet()
				c.arrange(h)
				in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
				_, _ = engine(in, &providers{}).Apply(t.Context(), c.then)
				hit = in.Hit() != nil
				h.Kill()
				runs(t, h, c.then)
				converged(t, h, c.then)
				if got := h.Jobs(); len(got) != want {
					t.Fatalf("killed at effect %d: jobs %v", n, got)
				}
			}
		})
	}
}

func reboot(h *memory.Host) {
	h.PowerCut(1)
	h.Boot()
	must(h.StartUnit(tctx, "kubelet.service"))
}

// TestUnreadOfTwo: what a unit has no use for is so for all contracts that name the file: the
// second one restarts nothing, whichever it is, nor does one that is left alone.
func TestUnreadOfTwo(t *testing.T) {
	plain := func(labels string) *desired.State {
		return of(desired.OwnerOSC, sealed(t, started("kubelet.service", flagsFile), managed(flagsFile, "FLAGS=1\nLABELS="+labels+"\n")))
	}
	for name, order := range map[string][2]*desired.State{
		"second has no use for less": {flagged(t, "1", "a"), plain("a")},
		"second has no use for more": {plain("a"), flagged(t, "1", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.Put("/etc/systemd/system/kubelet.service", kubeletUnit, 0o644)
			runs(t, h, order[0])
			if plan := runs(t, h, order[1]); !plan.Empty() {
				t.Errorf("planned %v", verbs(plan))
			}
			for _, st := range order {
				converged(t, h, st)
			}
			runs(t, h, of(order[0].Owner, sealed(t)))
			converged(t, h, order[1])
			if jobs := h.Jobs(); len(jobs) != 1 {
				t.Errorf("jobs %v", jobs)
			}
		})
	}
}
