package converge_test

import (
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/kind/podnetwork"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	netDir    = "/etc/cni/net.d"
	generated = netDir + "/10-containerd-net.conflist"
	template  = "/etc/containerd/kubenet_template.conf"
)

// bridge is a state with a pod network that is made of a template.
func bridge(t *testing.T, name string) *desired.State {
	parts := []string{`{"bridge":"` + name + `","ranges":[`, `],"routes":[`, "]}\n"}
	return sealed(t, nodeWith(nil), started("kubelet.service"), managed(template, strings.Join(parts, "@")), &desired.Directory{Path: netDir, Mode: 0o755},
		&desired.PodNetwork{File: generated, Template: template, Parts: parts, Unit: "kubelet.service", Node: "n1", Kubeconfig: kubeconfig})
}

// bridged is a machine on which containerd fills the template in when kubelet
// starts, unless there is a configuration.
func bridged(c *cluster) *memory.Host {
	h := newMachine()
	h.Put("/etc/systemd/system/kubelet.service", kubeletUnit, 0o644)
	h.Behave("kubelet.service", func(memory.Start) memory.Outcome {
		if names, _ := h.ReadDir(netDir); c.node == nil || len(c.node.PodCIDRs) == 0 || len(names) > 0 {
			return memory.Outcome{}
		}
		if text, err := h.ReadFile(template); err == nil {
			h.Put(generated, strings.ReplaceAll(string(text), "@", `"`+c.node.PodCIDRs[0]+`"`), 0o644)
		}
		return memory.Outcome{}
	})
	return h
}

func addressed() *cluster {
	return &cluster{node: &converge.NodeState{UID: "1", PodCIDRs: []string{"10.244.1.0/24"}}}
}

func made(name string) string {
	return `{"bridge":"` + name + `","ranges":["10.244.1.0/24"],"routes":["10.244.1.0/24"]}` + "\n"
}

// What the runtime makes of a template follows it: kubelet starts anew, also where
// the file is gone, and only then.
func TestPodNetworkFollowsItsTemplate(t *testing.T) {
	const restart, away = "restart unit:kubelet.service", "delete podnetwork:" + generated
	for name, x := range map[string]struct {
		arrange func(h *memory.Host, c *cluster)
		then    string
		want    []string
		file    string
	}{
		"as it was":        {func(*memory.Host, *cluster) {}, "a", []string{}, made("a")},
		"template changes": {func(*memory.Host, *cluster) {}, "b", []string{"update file:" + template, away, restart}, made("b")},
		"file edited":      {func(h *memory.Host, _ *cluster) { h.Put(generated, "{}", 0o644) }, "a", []string{away, restart}, made("a")},
		"file gone":        {func(h *memory.Host, _ *cluster) { must(h.Remove(generated)) }, "a", []string{restart}, made("a")},
		"file gone, kubelet just started": {func(h *memory.Host, _ *cluster) {
			must(h.RestartUnit(tctx, "kubelet.service"))
			must(h.Remove(generated))
		}, "a", []string{restart}, made("a")},
		"file about to be made": {func(h *memory.Host, _ *cluster) {
			must(h.Remove(generated))
			h.Put(netDir+"/2871043", "{", 0o600)
		}, "a", []string{}, ""},
		"other addresses": {func(_ *memory.Host, c *cluster) { c.node.PodCIDRs = []string{"10.244.9.0/24"} }, "a", []string{away, restart}, strings.ReplaceAll(made("a"), "244.1", "244.9")},
		"another's file": {func(h *memory.Host, _ *cluster) {
			must(h.Remove(generated))
			h.Put(netDir+"/05-other.conf", "{}", 0o644)
		}, "a", []string{}, ""},
		"no addresses": {func(h *memory.Host, c *cluster) {
			must(h.Remove(generated))
			c.node.PodCIDRs = nil
		}, "a", []string{}, ""},
		"file gone, API server away": {func(h *memory.Host, c *cluster) {
			must(h.Remove(generated))
			c.away = errors.New("connection refused")
		}, "a", []string{}, ""},
		"template repaired": {func(h *memory.Host, _ *cluster) { h.Put(template, "x", 0o644) }, "a", []string{"update file:" + template}, made("a")},
		"template repaired, file gone": {func(h *memory.Host, _ *cluster) {
			h.Put(template, "x", 0o644)
			must(h.Remove(generated))
		}, "a", []string{"update file:" + template, restart}, made("a")},
	} {
		t.Run(name, func(t *testing.T) {
			machine := func() (*memory.Host, *cluster) {
				c := addressed()
				h := bridged(c)
				applies(t, c, h, bridge(t, "a"))
				has(t, h, generated, made("a"))
				h.Flush()
				h.Advance(time.Minute)
				x.arrange(h, c)
				return h, c
			}
			h, c := machine()
			if d := cmp.Diff(x.want, verbs(applies(t, c, h, bridge(t, x.then)))); d != "" {
				t.Error(d)
			}
			if p := c.plan(t, h, bridge(t, x.then)); !p.Empty() {
				t.Errorf("still planned: %v", verbs(p))
			}
			if x.file != "" {
				has(t, h, generated, x.file)
			}
			jobs := len(h.Jobs())
			for n, hit := 1, true; hit; n++ {
				h, c := machine()
				in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
				_, _ = c.engine(in).Apply(t.Context(), bridge(t, x.then))
				hit = in.Hit() != nil
				h.Kill()
				applies(t, c, h, bridge(t, x.then))
				if p := c.plan(t, h, bridge(t, x.then)); !p.Empty() || len(h.Jobs()) != jobs {
					t.Fatalf("killed at effect %d: still planned: %v; jobs %v", n, verbs(p), h.Jobs())
				}
				if x.file != "" {
					has(t, h, generated, x.file)
				}
			}
		})
	}
}

// A file that is gone is seen where the clock was set back, too.
func TestPodNetworkGoneWhereTheClockWasSetBack(t *testing.T) {
	c := addressed()
	h := bridged(c)
	applies(t, c, h, bridge(t, "a"))
	h.Flush()
	h.Advance(time.Minute)
	h.SetClock(-time.Hour)
	must(h.Remove(generated))
	if d := cmp.Diff([]string{"restart unit:kubelet.service"}, verbs(applies(t, c, h, bridge(t, "a")))); d != "" {
		t.Error(d)
	}
	has(t, h, generated, made("a"))
}

// What was written before the clock was set back is no change since kubelet's start: the
// runtime has the time that it always has.
func TestPodNetworkIsAwaitedWhereTheClockWasSetBack(t *testing.T) {
	c := addressed()
	h := bridged(c)
	applies(t, c, h, bridge(t, "a"))
	h.Flush()
	h.Advance(time.Minute)
	must(h.Remove(generated))
	h.SetClock(-30 * time.Second)
	h.Behave("kubelet.service", func(memory.Start) memory.Outcome { return memory.Outcome{} })
	must(h.RestartUnit(tctx, "kubelet.service"))
	if p := c.plan(t, h, bridge(t, "a")); !p.Empty() {
		t.Errorf("planned: %v", verbs(p))
	}
	h.Advance(time.Minute)
	if d := cmp.Diff([]string{"restart unit:kubelet.service"}, verbs(c.plan(t, h, bridge(t, "a")))); d != "" {
		t.Error(d)
	}
}

// With the template goes what was made of it, and nothing that was there before.
func TestPodNetworkGoes(t *testing.T) {
	for i := range 4 {
		before, offline := i%2 == 1, i > 1
		c := addressed()
		h := bridged(c)
		if before {
			h.Put(generated, made("a"), 0o644)
		}
		was := others(h)
		applies(t, c, h, bridge(t, "a"))
		has(t, h, generated, made("a"))
		h.Advance(time.Minute)
		if offline { // the disk, in another machine
			if _, err := engineOffline(h, &providers{}).Apply(t.Context(), sealed(t)); err != nil {
				t.Fatal(err)
			}
		}
		applies(t, c, h, sealed(t))
		if d := cmp.Diff(was, others(h)); d != "" {
			t.Errorf("there before: %v, by another machine: %v: %s", before, offline, d)
		}
		if p := c.plan(t, h, sealed(t)); !p.Empty() || len(p.Kept) > 0 {
			t.Errorf("still planned: %+v", p)
		}
	}
}

// A Node that was deleted may get other addresses.
func TestPodNetworkOfDeletedNode(t *testing.T) {
	c := addressed()
	h := bridged(c)
	applies(t, c, h, bridge(t, "a"))
	h.Advance(time.Minute)
	next := &converge.NodeState{UID: "2", PodCIDRs: []string{"10.244.9.0/24"}}
	c.node = nil
	h.Behave("kubelet.service", func(memory.Start) memory.Outcome {
		c.node = next
		h.Put(generated, strings.ReplaceAll(made("a"), "244.1", "244.9"), 0o644)
		return memory.Outcome{}
	})
	want := []string{"delete podnetwork:" + generated, "restart unit:kubelet.service", "create node:n1"}
	if d := cmp.Diff(want, verbs(applies(t, c, h, bridge(t, "a")))); d != "" {
		t.Error(d)
	}
	if p := c.plan(t, h, bridge(t, "a")); !p.Empty() {
		t.Errorf("still planned: %v", verbs(p))
	}
}

// Before a machine joins there is nothing to make anew.
func TestPodNetworkOfFirstJoin(t *testing.T) {
	c := addressed()
	h := bridged(c)
	got := verbs(c.plan(t, h, bridge(t, "a")))
	want := []string{"create directory:" + netDir, "create file:" + template, "start unit:kubelet.service"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func FuzzMatches(f *testing.F) {
	f.Add("a1b2c", "1", "2")
	f.Add("abc", "", "")
	f.Add("abcbc", "bc", "")
	f.Fuzz(func(t *testing.T, text, x, y string) {
		parts := []string{"a", "b", "c"}
		podnetwork.Matches([]byte(text), parts)
		filled := "a" + x + "b" + y + "c"
		if x != "" && y != "" && !strings.HasPrefix(x, "b") && !podnetwork.Matches([]byte(filled), parts) {
			t.Errorf("%q is made of a, b, c", filled)
		}
		if podnetwork.Matches([]byte(text), parts) && (!strings.HasPrefix(text, "a") || !strings.HasSuffix(text, "c") || !strings.Contains(text, "b")) {
			t.Errorf("%q is not made of a, b, c", text)
		}
	})
}

// lateFile is a machine on which a file appears just after its directory was read.
type lateFile struct {
	*memory.Host
	path, text string
}

func (h *lateFile) ReadDir(p string) ([]string, error) {
	names, err := h.Host.ReadDir(p)
	if p == path.Dir(h.path) {
		h.Put(h.path, h.text, 0o644)
	}
	return names, err
}

// What containerd makes while it is looked for is not missing.
func TestPodNetworkIsMadeMeanwhile(t *testing.T) {
	c := addressed()
	h := bridged(c)
	applies(t, c, h, bridge(t, "a"))
	h.Flush()
	h.Advance(time.Minute)
	must(h.RestartUnit(tctx, "kubelet.service"))
	must(h.Remove(generated))
	if p := c.plan(t, &lateFile{h, generated, made("a")}, bridge(t, "a")); !p.Empty() {
		t.Errorf("planned: %v", verbs(p))
	}
}

// TestPodNetworkReported: where a change of the file is reported and not made, kubelet does
// not start anew for it, now or at any later look.
func TestPodNetworkReported(t *testing.T) {
	c := addressed()
	h := bridged(c)
	st := bridge(t, "a")
	applies(t, c, h, st)
	h.Flush()
	h.Advance(time.Minute)
	h.Put(generated, "{}", 0o644)
	h.ForgetJobs()
	for range 2 {
		res, err := c.engine(h).ApplyScope(t.Context(), st, converge.Scope{Decide: func(a converge.Action) converge.Decision {
			if strings.HasPrefix(string(a.ID), "podnetwork:") {
				return converge.Report
			}
			return converge.Do
		}})
		must(err)
		if len(res.Plan.Reported) != 1 || len(res.Plan.Actions) > 0 || joinJobs(h) != "" {
			t.Errorf("reported %v, planned %v, jobs %q", res.Plan.Reported, res.Plan.Actions, joinJobs(h))
		}
	}
	has(t, h, generated, "{}")
}
