package converge_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// joiner is a machine that is to join, with kubelet that creates the Node with the
// labels of its document where there is none, and leaves one that is there.
func joiner(c *cluster, labels map[string]string) *memory.Host {
	h := newMachine()
	h.Behave("kubelet.service", func(memory.Start) memory.Outcome {
		if c.node == nil {
			c.node = &converge.NodeState{UID: "new", Labels: maps.Clone(labels)}
		}
		return memory.Outcome{}
	})
	return h
}

// joining is a document's state with a Node, and with a credential that is asked for.
func joining(t *testing.T, labels map[string]string, edit ...func(*desired.State)) *desired.State {
	t.Helper()
	return sampleState(t, append(edit, func(st *desired.State) { st.Add(nodeWith(labels)) })...)
}

// remaining is a cluster with a Node from before, of which the document speaks otherwise.
func remaining() *cluster {
	return &cluster{node: &converge.NodeState{UID: "old", Labels: map[string]string{"theirs": "t", "pool": "x", "a": "1"}}}
}

// A Node that a machine finds in the cluster when it joins, since an earlier document was
// withdrawn and the Node stayed, gets the labels of the document in the run that joins:
// kubelet gives them only to a Node that it creates.
func TestJoinLabelsTheNodeThatIsThere(t *testing.T) {
	c := remaining()
	want := map[string]string{"pool": "y", "a": "1", "new": ""}
	h, s := joiner(c, want), joining(t, want)
	p := applies(t, c, h, s)
	if !slices.Contains(verbs(p), "update node:n1") || c.set != 1 {
		t.Errorf("done %v, %d patches", verbs(p), c.set)
	}
	if d := cmp.Diff(map[string]string{"theirs": "t", "pool": "y", "a": "1", "new": ""}, c.node.Labels); d != "" {
		t.Error(d)
	}
	h.Advance(time.Minute)
	if p := c.plan(t, h, s); !p.Empty() || len(p.Remarks)+len(p.Kept) > 0 {
		t.Errorf("a second plan has %+v", p)
	}
}

// What a label was on the Node that the machine found is what it is again when nobody wants
// it; what berth or kubelet brought goes.
func TestJoinKeepsWhatALabelWas(t *testing.T) {
	first := map[string]string{"pool": "y", "a": "1", "new": ""}
	for name, tc := range map[string]struct {
		c    *cluster
		edit func(*desired.State)
		want map[string]string
	}{
		"there":     {remaining(), func(*desired.State) {}, map[string]string{"theirs": "t", "pool": "x"}},
		"announced": {remaining(), announced, map[string]string{"theirs": "t", "pool": "x"}},
		"none":      {&cluster{}, func(*desired.State) {}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := joiner(tc.c, first)
			applies(t, tc.c, h, joining(t, first, tc.edit))
			h.Advance(time.Minute)
			idle := func() int {
				counting := effect.Inject(h, nil)
				applies(t, tc.c, counting, joining(t, first, tc.edit))
				return counting.Count()
			}
			if n, later := idle(), idle(); n != later {
				t.Errorf("the run after the one that joined has %d effects, a later one %d", n, later)
			}
			tc.c.node.Labels["new"] = "edited" // by somebody: no value of before
			applies(t, tc.c, h, joining(t, first, tc.edit))
			s := joining(t, map[string]string{}, tc.edit)
			applies(t, tc.c, h, s)
			if d := cmp.Diff(tc.want, tc.c.node.Labels); d != "" {
				t.Error(d)
			}
			if p := tc.c.plan(t, h, s); !p.Empty() {
				t.Errorf("a second plan has %v", verbs(p))
			}
		})
	}
}

// A Node that is looked at only in the run after the one that joined tells then what its
// labels were.
func TestLaterLookKeepsWhatALabelWas(t *testing.T) {
	c := remaining()
	c.away = errors.New("no route to host")
	h := joiner(c, nil)
	want := map[string]string{"pool": "y"}
	applies(t, c, h, joining(t, want))
	c.away = nil
	h.Advance(time.Minute)
	applies(t, c, h, joining(t, want))
	if c.node.Labels["pool"] != "y" {
		t.Fatalf("labels %v", c.node.Labels)
	}
	applies(t, c, h, joining(t, map[string]string{}))
	if d := cmp.Diff(remaining().node.Labels, c.node.Labels); d != "" {
		t.Error(d)
	}
}

// What a label was on another cluster's Node is no value of this one's.
func TestAnotherClusterKeepsWhatItsLabelWas(t *testing.T) {
	c := remaining()
	h := joiner(c, nil)
	want := map[string]string{"pool": "y"}
	applies(t, c, h, joining(t, want))
	elsewhere := func(st *desired.State) { credentialIn(st).Server = "https://other" }
	c.node = &converge.NodeState{UID: "other", Labels: map[string]string{"pool": "z"}}
	h.Advance(time.Minute)
	applies(t, c, h, joining(t, want, elsewhere))
	applies(t, c, h, joining(t, map[string]string{}, elsewhere))
	if d := cmp.Diff(map[string]string{"pool": "z"}, c.node.Labels); d != "" {
		t.Error(d)
	}
}

// announced has the Node created ahead of kubelet.
func announced(st *desired.State) { credentialIn(st).Announce = &desired.Node{} }

// One that is there already is looked at, whoever else may create it.
func TestAnnouncedNodeThatIsThere(t *testing.T) {
	c := remaining()
	h := joiner(c, nil)
	applies(t, c, h, joining(t, map[string]string{"pool": "y"}, announced))
	if c.node.Labels["pool"] != "y" || c.asked != 1 {
		t.Errorf("labels %v, asked %d times", c.node.Labels, c.asked)
	}
}

// early is a cluster of which somebody has asked for the Node ahead of the run, with the
// credential of then.
type early struct {
	*cluster
	opened int
}

func (e *early) Open(kubeconfig, node string) (converge.NodeSession, error) {
	if e.opened++; e.opened == 1 {
		return &cluster{away: errors.New("Unauthorized")}, nil
	}
	return e.cluster.Open(kubeconfig, node)
}

// What the credential of before was told counts for nothing.
func TestJoinTakesNoEarlyAnswer(t *testing.T) {
	c := remaining()
	h := joiner(c, nil)
	e := engine(h, &providers{}, func(o *converge.Options) { o.Nodes = &early{cluster: c} })
	res, err := e.Apply(t.Context(), joining(t, map[string]string{"pool": "y"}))
	if err != nil || c.node.Labels["pool"] != "y" || len(res.Plan.Remarks) > 0 {
		t.Errorf("%v, labels %v, %q", err, c.node.Labels, res.Plan.Remarks)
	}
}

// Taints are an operator's to put on a Node that is there.
func TestJoinReportsTaints(t *testing.T) {
	c := remaining()
	h := joiner(c, nil)
	s := sampleState(t, func(st *desired.State) {
		st.Add(nodeWith(map[string]string{"pool": "y"}, desired.Taint{Key: "gpu", Effect: "NoSchedule"}))
	})
	p := applies(t, c, h, s)
	want := []string{"Node n1 lacks the taint gpu:NoSchedule; an operator may change that: kubectl taint nodes n1 --overwrite gpu:NoSchedule"}
	if d := cmp.Diff(want, p.Remarks); d != "" {
		t.Error(d)
	}
}

// A Node that is as wanted, and one that kubelet creates, are not changed.
func TestJoinLeavesARightNode(t *testing.T) {
	want := map[string]string{"pool": "x", "a": "1"}
	for name, c := range map[string]*cluster{"there": remaining(), "none": {}} {
		h := joiner(c, want)
		if p := applies(t, c, h, joining(t, want)); c.set != 0 || slices.ContainsFunc(verbs(p), ofNode) || len(p.Remarks) > 0 {
			t.Errorf("%s: %v, %q, %d patches", name, verbs(p), p.Remarks, c.set)
		}
	}
}

func ofNode(verb string) bool {
	return strings.HasSuffix(verb, "node:n1") || strings.Contains(verb, "node:n1/")
}

// expire takes the machine's credential away, as its end does.
func expire(h *memory.Host) {
	must(h.Remove("/var/lib/kubelet/pki/kubelet-client-current.pem"))
}

// A label that the document drops while the machine has no credential goes in the run that
// brings the next one, unless that is another cluster's: there its Node is another.
func TestJoinTakesLabelsBack(t *testing.T) {
	for name, tc := range map[string]struct {
		server string
		// edited: a file has to be repaired, which waits for no API server.
		edited bool
		want   map[string]string
	}{
		"same cluster":      {"https://api", false, map[string]string{"a": "2"}},
		"after the repairs": {"https://api", true, map[string]string{"a": "2"}},
		"another cluster":   {"https://other", false, map[string]string{"a": "2", "gone": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{}
			first := map[string]string{"a": "1", "gone": "1"}
			h := joiner(c, first)
			applies(t, c, h, joining(t, first))
			expire(h)
			if tc.edited {
				h.Put("/etc/kubernetes/azure.json", "edited", 0o600)
			}
			h.Advance(time.Minute)
			s := joining(t, map[string]string{"a": "2"}, func(st *desired.State) { credentialIn(st).Server = tc.server })
			p := applies(t, c, h, s)
			if d := cmp.Diff(tc.want, c.node.Labels); d != "" || len(p.Remarks) > 0 {
				t.Errorf("%q %s", p.Remarks, d)
			}
			if !slices.Contains(verbs(p), "update node:n1") {
				t.Errorf("done: %v", verbs(p))
			}
			h.Advance(time.Minute)
			if p := c.plan(t, h, s); !p.Empty() || len(p.Remarks)+len(p.Kept) > 0 {
				t.Errorf("a second plan has %+v", p)
			}
		})
	}
}

func credentialIn(st *desired.State) *desired.ClientCertificate {
	return st.Lookup(desired.ClientCertificateID(kubeconfig)).(*desired.ClientCertificate)
}

// An API server that goes as soon as it has signed the certificate keeps nothing from
// being done. It is said, and the next run does what was left.
func TestJoinWhereTheNodeIsNotSeen(t *testing.T) {
	for name, vanish := range map[string]func(*cluster){
		"away": func(c *cluster) { c.away = errors.New("connection refused") },
		"deaf": func(c *cluster) { c.deaf = true },
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{}
			first := map[string]string{"a": "1", "gone": "1"}
			h := joiner(c, first)
			applies(t, c, h, joining(t, first))
			expire(h)
			h.Advance(time.Minute)
			vanish(c)
			s := joining(t, map[string]string{"a": "2"})
			p := applies(t, c, h, s)
			if len(p.Remarks) != 2 || !strings.Contains(p.Remarks[0], "Node n1 was not compared") || !strings.Contains(p.Remarks[1], "label gone of Node n1 is no longer wanted and was not looked at") {
				t.Errorf("remarks %q", p.Remarks)
			}
			c.away, c.deaf = nil, false
			h.Advance(time.Minute)
			if d := cmp.Diff([]string{"update node:n1", "delete node:n1/gone"}, verbs(applies(t, c, h, s))); d != "" {
				t.Errorf("the API server is back: %s", d)
			}
			if d := cmp.Diff(map[string]string{"a": "2"}, c.node.Labels); d != "" {
				t.Error(d)
			}
		})
	}
}

// A Node from before that goes between the look and the patch, as where somebody cleans up,
// is none that has to be labelled: kubelet gives its own the labels.
func TestNodeFromBeforeGoes(t *testing.T) {
	for name, becomes := range map[string]*converge.NodeState{"gone": nil, "another": {UID: "new", Labels: map[string]string{"pool": "y"}}} {
		c := remaining()
		h := joiner(c, nil)
		c.before = func() { c.node = becomes }
		want := map[string]string{"pool": "y"}
		if _, err := c.engine(h).Apply(t.Context(), joining(t, want)); err != nil || c.set != 1 {
			t.Errorf("%s: %v, %d patches", name, err, c.set)
		}
	}
}

// A patch that the API server refuses fails the run, when all else is done.
func TestJoinFailsWhereTheNodeCannotBeLabelled(t *testing.T) {
	c := remaining()
	h := joiner(c, nil)
	c.mangles = true
	_, err := c.engine(h).Apply(t.Context(), joining(t, map[string]string{"pool": "y"}))
	if e, ok := errors.AsType[*converge.NodeError](err); !ok || e.What != "set labels" {
		t.Errorf("error %v", err)
	}
	if st, err := h.Unit(tctx, "kubelet.service"); err != nil || st.ActiveState != "active" {
		t.Errorf("kubelet is %s, %v", st.ActiveState, err)
	}
}

// What is decided of actions counts for those that come up when the machine has joined.
func TestDecideOnALateLabel(t *testing.T) {
	c := remaining()
	h := joiner(c, nil)
	res, err := c.engine(h).ApplyScope(t.Context(), joining(t, map[string]string{"pool": "y"}), converge.Scope{Decide: func(a converge.Action) converge.Decision {
		if ofNode(string(a.ID)) {
			return converge.Report
		}
		return converge.Do
	}})
	if err != nil || c.set != 0 || len(res.Plan.Reported) != 1 || slices.ContainsFunc(verbs(res.Plan), ofNode) {
		t.Errorf("%v, %d patches, %+v", err, c.set, res.Plan)
	}
}

// Killed or cut at any effect of joining with another document, the Node ends as in an
// undisturbed run.
func TestJoinFaultsAnywhere(t *testing.T) {
	first, second := map[string]string{"a": "1", "pool": "x", "gone": "1"}, map[string]string{"a": "2", "pool": "y"}
	third := map[string]string{"a": "2"}
	live := func(disturb func(h *memory.Host, c *cluster, s *desired.State)) (map[string]string, string) {
		c := &cluster{node: &converge.NodeState{UID: "old", Labels: map[string]string{"theirs": "t", "pool": "w"}}}
		h := joiner(c, first)
		for _, labels := range []map[string]string{first, second, third} {
			s := joining(t, labels)
			disturb(h, c, s)
			applies(t, c, h, s)
			if p := c.plan(t, h, s); !p.Empty() {
				t.Fatalf("still planned: %v", verbs(p))
			}
			h.Flush()
			expire(h)
			h.Advance(time.Minute)
		}
		return c.node.Labels, tree(h, ledgerFile)[ledgerFile]
	}
	want, entries := live(func(*memory.Host, *cluster, *desired.State) {})
	if d := cmp.Diff(map[string]string{"theirs": "t", "a": "2", "pool": "w"}, want); d != "" {
		t.Fatal(d)
	}
	ends := 0
	for _, cut := range []bool{false, true} {
		for n, hit := 1, true; hit; n += stride {
			hit = false
			got, after := live(func(h *memory.Host, c *cluster, s *desired.State) {
				in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
				_, _ = c.engine(in).Apply(t.Context(), s)
				hit = hit || in.Hit() != nil
				endRun(h, cut && in.Hit() != nil, uint64(n))
				ends++
			})
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("disturbed at effect %d: %s", n, d)
			}
			if d := cmp.Diff(entries, after); d != "" && !cut {
				t.Fatalf("disturbed at effect %d: %s", n, d)
			}
		}
	}
	t.Logf("%d ends", ends)
}

// endRun ends a run's process, or the machine.
func endRun(h *memory.Host, cut bool, seed uint64) {
	if !cut {
		h.Kill()
		return
	}
	h.PowerCut(seed)
	h.Boot()
}
