package converge_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// cluster is one with a single Node, n1; nil is none.
type cluster struct {
	node *converge.NodeState
	// away is what the API server's absence is called; deaf takes requests and
	// answers none; mangles changes what it is sent.
	away       error
	deaf       bool
	mangles    bool
	asked, set int
	// before comes before a patch.
	before func()
}

func (c *cluster) Open(string, string) (converge.NodeSession, error) { return c, nil }

func (c *cluster) Get(ctx context.Context) (*converge.NodeState, error) {
	c.asked++
	if _, bounded := ctx.Deadline(); c.deaf && !bounded {
		<-ctx.Done()
	}
	if c.deaf {
		return nil, context.DeadlineExceeded // one that is not bounded would hang
	}
	if c.node == nil || c.away != nil {
		return nil, c.away
	}
	return c.copy(), nil
}

func (c *cluster) copy() *converge.NodeState {
	out := *c.node
	out.Labels = maps.Clone(out.Labels)
	return &out
}

func (c *cluster) Label(_ context.Context, uid string, set map[string]*string) (*converge.NodeState, error) {
	c.set++
	if c.before != nil {
		c.before()
	}
	if c.away != nil || c.node == nil || uid != c.node.UID {
		return nil, errors.Join(c.away, errors.New("uid "+uid))
	}
	for key, value := range set {
		if delete(c.node.Labels, key); value != nil && !c.mangles {
			c.node.Labels[key] = *value
		}
	}
	return c.copy(), nil
}

func (c *cluster) Await(ctx context.Context) (*converge.NodeState, error) {
	if _, bounded := ctx.Deadline(); c.node == nil && bounded {
		return nil, errors.New("no Node came")
	}
	return c.Get(ctx)
}

func (c *cluster) engine(h host.Host) *converge.Engine {
	return engine(h, &providers{}, func(o *converge.Options) { o.Nodes = c })
}

// nodeMachine runs kubelet, which creates the Node when it starts.
func nodeMachine(c *cluster, labels map[string]string) *memory.Host {
	h := newMachine()
	h.Put("/etc/systemd/system/kubelet.service", kubeletUnit, 0o644)
	h.Behave("kubelet.service", func(memory.Start) memory.Outcome {
		if c.node == nil && c.away == nil {
			c.node = &converge.NodeState{UID: "1", Labels: maps.Clone(labels)}
		}
		return memory.Outcome{}
	})
	must(h.StartUnit(tctx, "kubelet.service"))
	h.Advance(time.Minute)
	return h
}

func nodeWith(labels map[string]string, taints ...desired.Taint) *desired.NodeObject {
	return &desired.NodeObject{Name: "n1", Kubeconfig: kubeconfig, Unit: "kubelet.service", Labels: labels, Taints: taints}
}

// nodeState is a machine's state with the Node, kubelet and a file.
func nodeState(t *testing.T, labels map[string]string, taints ...desired.Taint) *desired.State {
	return sealed(t, nodeWith(labels, taints...), started("kubelet.service"), managed("/etc/kubernetes/notes", "n\n"))
}

func applies(t *testing.T, c *cluster, h host.Host, s *desired.State) *converge.Plan {
	t.Helper()
	res, err := c.engine(h).Apply(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return res.Plan
}

func (c *cluster) plan(t *testing.T, h host.Host, s *desired.State) *converge.Plan {
	t.Helper()
	p, err := c.engine(h).Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A label that changes is patched, one that goes is taken off or becomes what it
// was, those of others stay, and kubelet is left alone.
func TestLabelsFollow(t *testing.T) {
	c := &cluster{}
	h := nodeMachine(c, map[string]string{"theirs": "t", "pool": "old", "stays": "s"})
	jobs := len(h.Jobs())
	for _, step := range []struct {
		labels map[string]string
		want   map[string]string
		verbs  []string
	}{
		{map[string]string{"pool": "a", "new": "1", "stays": "s"}, map[string]string{"theirs": "t", "pool": "a", "new": "1", "stays": "s"}, []string{"create file:/etc/kubernetes/notes", "update node:n1"}},
		{map[string]string{"pool": "b", "new": "1"}, map[string]string{"theirs": "t", "pool": "b", "new": "1", "stays": "s"}, []string{"update node:n1"}},
		{nil, map[string]string{"theirs": "t", "pool": "old", "stays": "s"}, []string{"delete node:n1/new", "restore node:n1/pool"}},
	} {
		s := nodeState(t, step.labels)
		if d := cmp.Diff(step.verbs, verbs(applies(t, c, h, s))); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(step.want, c.node.Labels); d != "" {
			t.Error(d)
		}
		if p := c.plan(t, h, s); !p.Empty() || len(p.Remarks)+len(p.Kept) > 0 {
			t.Errorf("a second plan has %+v", p)
		}
	}
	if got := h.Jobs()[jobs:]; len(got) > 0 {
		t.Errorf("jobs %v", got)
	}
}

// What somebody else made of a label since stays when it is withdrawn, and is said.
func TestForeignLabelIsKept(t *testing.T) {
	c := &cluster{}
	h := nodeMachine(c, nil)
	c.node.Labels = map[string]string{}
	applies(t, c, h, nodeState(t, map[string]string{"a": "1", "b": "1"}))
	c.node.Labels["a"] = "2"
	p := applies(t, c, h, sealed(t))
	want := []string{`label a of Node n1 is no longer wanted and is kept: it is "2", and berth had set it to "1"`}
	if d := cmp.Diff(want, p.Kept); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"a": "2"}, c.node.Labels); d != "" {
		t.Error(d)
	}
	if p := c.plan(t, h, sealed(t)); !p.Empty() || len(p.Kept) > 0 {
		t.Errorf("a second plan has %+v", p)
	}
}

// The labels of the Node that a machine was, or that its disk was copied from, are
// left alone.
func TestRenamedNode(t *testing.T) {
	c := &cluster{}
	h := nodeMachine(c, map[string]string{})
	applies(t, c, h, nodeState(t, map[string]string{"a": "1"}))
	other := nodeWith(nil)
	other.Name = "n2"
	s := sealed(t, other)
	for _, id := range applies(t, c, h, s).Actions {
		if strings.HasPrefix(string(id.ID), "node:") {
			t.Errorf("planned: %v", id)
		}
	}
	if c.set != 1 || c.node.Labels["a"] != "1" {
		t.Errorf("labels %v", c.node.Labels)
	}
	led, err := new(ledger.Reader).Load(h)
	if err != nil || led.Ours("node:n1") || led.Ours("node:n1/a") || !led.Ours("node:n2") {
		t.Errorf("%v, ledger %v", err, led.Entries)
	}
}

// Two contracts may want one label alike; otherwise the second is refused.
func TestLabelsOfTwoOwners(t *testing.T) {
	c := &cluster{}
	h := nodeMachine(c, map[string]string{})
	applies(t, c, h, nodeState(t, map[string]string{"a": "1", "b": "1"}))
	_, err := c.engine(h).Apply(t.Context(), of(desired.OwnerOSC, nodeState(t, map[string]string{"a": "2"})))
	if _, ok := errors.AsType[*converge.OwnedElsewhereError](err); !ok || !strings.Contains(err.Error(), "node:n1/a") {
		t.Errorf("error %v", err)
	}
	applies(t, c, h, of(desired.OwnerOSC, nodeState(t, map[string]string{"a": "1", "c": "1"})))
	applies(t, c, h, sealed(t))
	if d := cmp.Diff(map[string]string{"a": "1", "c": "1"}, c.node.Labels); d != "" {
		t.Error(d)
	}
}

// A taint that changes in the contract is an operator's to change, and is reported
// until that is done. One that somebody took away since the Node registered is not.
func TestTaintsAreReported(t *testing.T) {
	gpu, gpu2 := desired.Taint{Key: "gpu", Value: "1", Effect: "NoSchedule"}, desired.Taint{Key: "gpu", Value: "2", Effect: "NoSchedule"}
	startup := desired.Taint{Key: "starting", Effect: "NoExecute"}
	c := &cluster{away: errors.New("not yet")}
	h := nodeMachine(c, nil)
	must(h.StopUnit(tctx, "kubelet.service"))
	unjoined := engine(h, &providers{}, func(o *converge.Options) { o.Nodes = noCredential{} })
	if _, err := unjoined.Apply(t.Context(), nodeState(t, nil, gpu, startup)); err != nil {
		t.Fatal(err)
	}
	c.away, c.node = nil, &converge.NodeState{UID: "1", Taints: []desired.Taint{gpu}}
	for _, step := range []struct {
		name         string
		taints, have []desired.Taint
		want         []string
	}{
		{"as registered, one taken away", []desired.Taint{gpu, startup}, []desired.Taint{gpu}, nil},
		{"value changed", []desired.Taint{gpu2, startup}, []desired.Taint{gpu}, []string{"Node n1 lacks the taint gpu=2:NoSchedule; an operator may change that: kubectl taint nodes n1 --overwrite gpu=2:NoSchedule"}},
		{"still not", []desired.Taint{gpu2, startup}, []desired.Taint{gpu}, []string{"Node n1 lacks the taint gpu=2:NoSchedule; an operator may change that: kubectl taint nodes n1 --overwrite gpu=2:NoSchedule"}},
		{"operator did it", []desired.Taint{gpu2, startup}, []desired.Taint{gpu2}, nil},
		{"no taints any more", nil, []desired.Taint{gpu2}, []string{"Node n1 still has the taint gpu=2:NoSchedule; an operator may change that: kubectl taint nodes n1 gpu:NoSchedule-"}},
		{"operator did that, too", nil, nil, nil},
		{"and put it back", nil, []desired.Taint{gpu2}, nil},
	} {
		c.node.Taints = step.have
		p := applies(t, c, h, nodeState(t, nil, step.taints...))
		if d := cmp.Diff(step.want, p.Remarks); d != "" || !p.Empty() {
			t.Errorf("%s: %v %s", step.name, verbs(p), d)
		}
	}
}

// noCredential is a machine that has not joined.
type noCredential struct{}

func (noCredential) Open(string, string) (converge.NodeSession, error) { return nil, fs.ErrNotExist }

// A Node that somebody deleted comes back by a restart of kubelet, unless kubelet
// has just started and is about to create it.
func TestDeletedNodeComesBack(t *testing.T) {
	c := &cluster{}
	s := nodeState(t, map[string]string{"a": "1"})
	h := nodeMachine(c, map[string]string{"a": "1"})
	applies(t, c, h, s)
	c.node = nil
	jobs := len(h.Jobs())
	p := applies(t, c, h, s)
	if d := cmp.Diff([]string{"restart unit:kubelet.service", "create node:n1"}, verbs(p)); d != "" {
		t.Error(d)
	}
	if got := h.Jobs()[jobs:]; len(got) != 1 || got[0].Verb != "restart" || c.node == nil {
		t.Errorf("jobs %v, Node %v", got, c.node)
	}
	c.node = nil
	if p := c.plan(t, h, s); !p.Empty() || len(p.Remarks) != 1 || !strings.Contains(p.Remarks[0], "is to create it") {
		t.Errorf("kubelet has just started: %+v", p)
	}
}

// A clock that was set changes nothing of how long kubelet has run: a Node that is gone is
// healed, and a kubelet that has just started has its time.
func TestDeletedNodeWhereTheClockWasSet(t *testing.T) {
	for _, by := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		c := &cluster{}
		s := nodeState(t, map[string]string{"a": "1"})
		h := nodeMachine(c, map[string]string{"a": "1"})
		applies(t, c, h, s)
		h.SetClock(by)
		c.node = nil
		if d := cmp.Diff([]string{"restart unit:kubelet.service", "create node:n1"}, verbs(applies(t, c, h, s))); d != "" {
			t.Errorf("set by %v: %s", by, d)
		}
		h.SetClock(by)
		c.node = nil
		if p := c.plan(t, h, s); !p.Empty() || len(p.Remarks) != 1 {
			t.Errorf("set by %v, kubelet has just started: %+v", by, p)
		}
	}
}

// A kubelet that does not create its Node again fails the run.
func TestDeletedNodeStaysAway(t *testing.T) {
	c := &cluster{}
	h := nodeMachine(c, nil)
	h.Behave("kubelet.service", func(memory.Start) memory.Outcome { return memory.Outcome{} })
	c.node = nil
	res, err := c.engine(h).Apply(t.Context(), nodeState(t, nil))
	if e, ok := errors.AsType[*converge.NodeError](err); !ok || e.Node != "n1" {
		t.Errorf("error %v", err)
	}
	has(t, h, "/etc/kubernetes/notes", "n\n")
	if len(res.Timeline) == 0 {
		t.Error("no timeline")
	}
}

// An API server that is away, or takes requests and answers none, holds nothing
// else up: what is local is repaired, and that the Node is not known is a remark.
func TestUnknownNode(t *testing.T) {
	for name, vanish := range map[string]func(*cluster){
		"away": func(c *cluster) { c.away = errors.New("connection refused") },
		"deaf": func(c *cluster) { c.deaf = true },
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{}
			h := nodeMachine(c, map[string]string{})
			applies(t, c, h, nodeState(t, map[string]string{"a": "1", "b": "1"}))
			h.Put("/etc/kubernetes/notes", "edited\n", 0o644)
			must(h.StopUnit(tctx, "kubelet.service"))
			vanish(c)
			p := applies(t, c, h, nodeState(t, map[string]string{"a": "2"}))
			if d := cmp.Diff([]string{"update file:/etc/kubernetes/notes", "start unit:kubelet.service"}, verbs(p)); d != "" {
				t.Error(d)
			}
			if len(p.Remarks) != 2 || !strings.Contains(p.Remarks[0], "Node n1 was not compared") || !strings.Contains(p.Remarks[1], "label b of Node n1 is no longer wanted and was not looked at") {
				t.Errorf("remarks %q", p.Remarks)
			}
			has(t, h, "/etc/kubernetes/notes", "n\n")
			c.away, c.deaf = nil, false
			if d := cmp.Diff([]string{"update node:n1", "delete node:n1/b"}, verbs(applies(t, c, h, nodeState(t, map[string]string{"a": "2"})))); d != "" {
				t.Errorf("the API server is back: %s", d)
			}
		})
	}
}

// Labels are given back while all is there of which the Node's credential is made; where that
// fails, all that is left is tried at the end.
func TestLabelsGoBeforeTheCredential(t *testing.T) {
	for name, fails := range map[string]int{"at once": 0, "the second time": 1} {
		t.Run(name, func(t *testing.T) {
			early, failing := 0, fails
			const plugin = "/etc/plugin.json"
			c := &cluster{}
			h := nodeMachine(c, map[string]string{"a": "0"})
			s := sealed(t, nodeWith(map[string]string{"a": "1", "b": "1"}), managed(plugin, "{}\n"))
			applies(t, c, h, s)
			c.before = func() {
				if _, err := h.Lstat(plugin); err == nil {
					early++
				}
				c.away = nil
				if fails > 0 {
					fails--
					c.away = errors.New("a token that has ended")
				}
			}
			applies(t, c, h, sealed(t))
			if want := 2 - failing; early != want {
				t.Errorf("%d patches before the credential goes, want %d", early, want)
			}
			if d := cmp.Diff(map[string]string{"a": "0"}, c.node.Labels); d != "" {
				t.Error(d)
			}
		})
	}
}

// An API server that goes between plan and patch fails the run, when everything
// local is done.
func TestPatchFailsLast(t *testing.T) {
	for name, c := range map[string]*cluster{"goes": {}, "mangles": {mangles: true}} {
		h := nodeMachine(c, map[string]string{})
		e := engine(h, &providers{}, func(o *converge.Options) {
			o.Nodes = c
			o.Observer = func(s converge.Span) {
				if s.Phase == "commit" && name == "goes" {
					c.away = errors.New("connection refused")
				}
			}
		})
		_, err := e.Apply(t.Context(), nodeState(t, map[string]string{"a": "1"}))
		if e, ok := errors.AsType[*converge.NodeError](err); !ok || e.What != "set labels" || (e.Hint() != "") != (name == "mangles") {
			t.Errorf("%s: error %v", name, err)
		}
		has(t, h, "/etc/kubernetes/notes", "n\n")
		c.away, c.mangles = nil, false
		applies(t, c, h, nodeState(t, map[string]string{"a": "1"}))
		if c.node.Labels["a"] != "1" {
			t.Errorf("%s: labels %v", name, c.node.Labels)
		}
	}
}

// Before a machine has joined nobody is asked, and afterwards nobody for a Node that was
// created just then: it would cost time.
func TestUnjoinedAsksNobody(t *testing.T) {
	h := newMachine()
	c := &cluster{}
	s := joining(t, map[string]string{"a": "1"}, announced)
	create := func() bool {
		c.node = &converge.NodeState{UID: "1", Labels: map[string]string{"a": "1"}}
		return true
	}
	e := engine(h, &providers{creates: create}, func(o *converge.Options) { o.Nodes = c })
	if _, err := e.Apply(t.Context(), s); err != nil || c.node == nil || c.asked > 0 {
		t.Errorf("%v, Node %v, asked %d times", err, c.node, c.asked)
	}
	h.Advance(time.Minute)
	if p := c.plan(t, h, s); !p.Empty() || c.asked != 1 {
		t.Errorf("%+v, asked %d times", p, c.asked)
	}
	h.Put(kubeconfig, "https://other", 0o600) // then the credential is another cluster's
	if p := c.plan(t, h, s); c.asked != 1 || p.Empty() {
		t.Errorf("%+v, asked %d times", p, c.asked)
	}
}

// Killed or cut at any effect of coming, changing and going, labels and kubelet
// end as in an undisturbed run.
func TestNodeFaultsAnywhere(t *testing.T) {
	steps := func() []*desired.State {
		return []*desired.State{nodeState(t, map[string]string{"a": "1", "pool": "x"}), nodeState(t, map[string]string{"a": "2", "c": "1"}), sealed(t)}
	}
	live := func(disturb func(h *memory.Host, c *cluster, i int, s *desired.State)) (labels []map[string]string, tree map[string]string) {
		c := &cluster{}
		h := nodeMachine(c, map[string]string{"theirs": "t", "pool": "old"})
		for i, s := range steps() {
			disturb(h, c, i, s)
			applies(t, c, h, s)
			if p := c.plan(t, h, s); !p.Empty() {
				t.Fatalf("still planned: %v", verbs(p))
			}
			labels = append(labels, maps.Clone(c.node.Labels))
		}
		return labels, others(h)
	}
	want, tree := live(func(*memory.Host, *cluster, int, *desired.State) {})
	if d := cmp.Diff([]map[string]string{{"theirs": "t", "pool": "x", "a": "1"}, {"theirs": "t", "pool": "old", "a": "2", "c": "1"}, {"theirs": "t", "pool": "old"}}, want); d != "" {
		t.Fatal(d)
	}
	ends := 0
	for _, cut := range []bool{false, true} {
		for n, hit := 1, true; hit; n++ {
			hit = false
			got, after := live(func(h *memory.Host, c *cluster, _ int, s *desired.State) {
				in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
				_, _ = c.engine(in).Apply(t.Context(), s)
				hit = hit || in.Hit() != nil
				if cut && in.Hit() != nil {
					h.PowerCut(uint64(n))
					h.Boot()
					must(h.StartUnit(tctx, "kubelet.service"))
				} else {
					h.Kill()
				}
				ends++
			})
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("disturbed at effect %d: %s", n, d)
			}
			if d := cmp.Diff(tree, after); d != "" && !cut {
				t.Fatalf("disturbed at effect %d: %s", n, d)
			}
		}
	}
	t.Logf("%d ends", ends)
}
