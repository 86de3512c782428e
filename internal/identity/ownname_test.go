package identity

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/report"
)

const (
	nodePath  = "/api/v1/nodes/n1"
	leasePath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
)

// ofNode answers what a node asks with its certificate.
func (c *cluster) ofNode(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.URL.Path)
	if !slices.Contains(c.from, r.RemoteAddr) {
		c.from = append(c.from, r.RemoteAddr)
	}
	status := http.StatusNotFound
	switch {
	case c.busy > 0:
		c.busy--
		status = http.StatusServiceUnavailable
	case r.Method == http.MethodPost && r.URL.Path == "/api/v1/nodes":
		answer(w, http.StatusConflict, "AlreadyExists")
		return
	case r.Method != http.MethodGet:
		c.t.Errorf("%s %s", r.Method, r.URL)
	case r.URL.Path == nodePath && c.node != nil:
		n := c.node()
		if n == nil {
			break
		}
		n.TypeMeta, n.Name = meta.TypeMeta{APIVersion: "v1", Kind: "Node"}, "n1"
		_ = json.NewEncoder(w).Encode(n)
		return
	case r.URL.Path == leasePath && c.lease != nil:
		if l := c.lease(); l != nil {
			l.TypeMeta = meta.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
			_ = json.NewEncoder(w).Encode(l)
			return
		}
		status = http.StatusForbidden
	}
	answer(w, status, strings.ReplaceAll(http.StatusText(status), " ", ""))
}

// asks are the requests with a node's certificate since the last time.
func (c *cluster) asks() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.asked
	c.asked = nil
	return out
}

// reported is a Node as a kubelet of a machine reports it.
func reported(ready core.ConditionStatus, info core.NodeSystemInfo) func() *core.Node {
	return func() *core.Node {
		info.KubeletVersion = "v1.36.3"
		return &core.Node{Status: core.NodeStatus{NodeInfo: info,
			Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: ready}},
			Addresses:  []core.NodeAddress{{Type: core.NodeInternalIP, Address: "10.0.0.4"}}}}
	}
}

// leased is a Lease for a second: a kubelet that runs renews it after a quarter of that. It
// is renewed at each look from one on, never where that is 0.
func leased(from int) func() *coordination.Lease {
	looks, lasts := 0, int32(1)
	return func() *coordination.Lease {
		looks++
		l := &coordination.Lease{Spec: coordination.LeaseSpec{LeaseDurationSeconds: &lasts, RenewTime: &meta.MicroTime{Time: time.Unix(1000, 0)}}}
		if from > 0 && looks >= from {
			l.Spec.RenewTime.Time = l.Spec.RenewTime.Add(time.Duration(looks) * time.Second)
		}
		return l
	}
}

func ownMachine(t *testing.T) (clock, core.NodeSystemInfo) {
	t.Helper()
	h := memory.New()
	h.Put("/etc/machine-id", "0123456789abcdef0123456789abcdef\n", 0o444)
	h.Put("/sys/class/dmi/id/product_uuid", "4c4c4544-0000-1111-2222-333344445555\n", 0o400)
	return clock{h, 0}, core.NodeSystemInfo{MachineID: "0123456789abcdef0123456789abcdef", SystemUUID: "4C4C4544-0000-1111-2222-333344445555", BootID: "an earlier one"}
}

// A name whose Node another machine keeps alive is refused; any other is the machine's. It
// waits only where another machine may live: there it looks at the Lease more than once.
func TestIssueForANameThatIsTaken(t *testing.T) {
	_, own := ownMachine(t)
	other := core.NodeSystemInfo{MachineID: "fedcba98", SystemUUID: own.SystemUUID, BootID: "theirs"}
	down := func() *core.Node { return nil }
	for name, tc := range map[string]struct {
		node  func() *core.Node
		lease func() *coordination.Lease
		boot  bool // the Node speaks of this boot
		taken bool
		looks int // at the Lease, at most
	}{
		"there is no Node":                 {node: down, looks: 0},
		"it is this machine's":             {node: reported(core.ConditionTrue, own), lease: leased(2), looks: 0},
		"it is this boot's":                {node: reported(core.ConditionTrue, other), lease: leased(2), boot: true, looks: 0},
		"another machine renews":           {node: reported(core.ConditionTrue, other), lease: leased(2), taken: true, looks: 2},
		"another machine is not Ready":     {node: reported(core.ConditionFalse, other), lease: leased(2), taken: true, looks: 2},
		"another machine of the image":     {node: reported(core.ConditionTrue, core.NodeSystemInfo{MachineID: own.MachineID, SystemUUID: "5d5d"}), lease: leased(2), taken: true, looks: 2},
		"another machine stopped":          {node: reported(core.ConditionTrue, other), lease: leased(0), looks: 9},
		"another machine is gone":          {node: reported(core.ConditionUnknown, other), lease: leased(2), looks: 0},
		"there is no Lease":                {node: reported(core.ConditionTrue, other), looks: 1},
		"the Lease may not be read":        {node: reported(core.ConditionTrue, other), lease: func() *coordination.Lease { return nil }, looks: 1},
		"a Node that nobody has reported":  {node: func() *core.Node { return &core.Node{} }, looks: 1},
		"nobody has reported, but renews":  {node: func() *core.Node { return &core.Node{} }, lease: leased(2), taken: true, looks: 2},
		"its first look at a Lease is new": {node: reported(core.ConditionTrue, other), lease: leased(1), taken: true, looks: 2},
	} {
		for _, early := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", asked early"}[early], func(t *testing.T) {
				c := newCluster(t)
				h, _ := ownMachine(t)
				c.node, c.lease = tc.node, tc.lease
				if tc.boot {
					c.node = func() *core.Node {
						n := tc.node()
						n.Status.NodeInfo.BootID = report.BootID(h)
						return n
					}
				}
				e := &EarlyIssue{}
				if early {
					e.Begin(t.Context(), New(h), c.wants(time.Minute))
				}
				before := len(h.Tree("/"))
				_, err := New(h).After(e).Issue(t.Context(), c.wants(time.Minute))
				isTaken(t, err, tc.taken)
				leases := 0
				for _, path := range c.asks() {
					if path == leasePath {
						leases++
					}
				}
				if leases > tc.looks || tc.looks > 0 && leases == 0 {
					t.Errorf("%d looks at the Lease, want %d", leases, tc.looks)
				}
				if n := len(h.Tree("/")); n != before {
					t.Errorf("%d files on the machine, were %d", n, before)
				}
			})
		}
	}
}

func isTaken(t *testing.T, err error, taken bool) {
	t.Helper()
	if !taken {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Reason != ReasonTaken || e.ExitCode() != exitcode.Credential || !strings.Contains(e.Hint(), "kubectl delete node n1") {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"Lease kube-node-lease/n1", "this machine has machine ID \"0123456789abcdef0123456789abcdef\""} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%q is not in: %v", want, e)
		}
	}
}

// The refusal names the other machine.
func TestTakenNameTellsOfItsMachine(t *testing.T) {
	c := newCluster(t)
	h, _ := ownMachine(t)
	c.node, c.lease = reported(core.ConditionTrue, core.NodeSystemInfo{MachineID: "fedcba98", SystemUUID: "5d5d"}), leased(2)
	_, err := New(h).Issue(t.Context(), c.wants(time.Minute))
	const want = `it has InternalIP 10.0.0.4, kubelet v1.36.3, machine ID "fedcba98", system UUID "5d5d"`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// What is asked in the usual case is the Node, once; who needs the certificate finds the
// answer where the request began early, and the Node is created over the same connection.
func TestIssueLooksOnceAtItsNode(t *testing.T) {
	c := newCluster(t)
	h, _ := ownMachine(t)
	e := &EarlyIssue{}
	e.Begin(t.Context(), New(h), c.wants(time.Minute))
	<-e.begun.done
	if got := c.asks(); len(got) != 1 || got[0] != nodePath {
		t.Errorf("asked early %q", got)
	}
	i := New(h).Over(&apiserver.Connections{}).After(e)
	want := c.wants(time.Minute)
	want.Announce = &desired.Node{Unless: "/none"}
	cred, err := i.Issue(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.asks(); len(got) != 0 {
		t.Errorf("asked again %q", got)
	}
	if _, err := i.Announce(t.Context(), want, cred); err != nil {
		t.Error(err)
	}
	if len(c.from) != 1 {
		t.Errorf("%d connections with the certificate", len(c.from))
	}
}

// The Node is looked at again when its Lease was renewed: this machine's kubelet may have been
// the one, and who deletes the Node frees its name.
func TestTakenNameIsLookedAtAgain(t *testing.T) {
	_, own := ownMachine(t)
	for name, later := range map[string]func() *core.Node{
		"this machine's": reported(core.ConditionTrue, own),
		"deleted":        func() *core.Node { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			h, _ := ownMachine(t)
			looks := 0
			c.lease = leased(2)
			c.node = func() *core.Node {
				if looks++; looks > 1 {
					return later()
				}
				return reported(core.ConditionTrue, core.NodeSystemInfo{MachineID: "fedc"})()
			}
			if _, err := New(h).Issue(t.Context(), c.wants(time.Minute)); err != nil || looks != 2 {
				t.Errorf("%v after %d looks", err, looks)
			}
		})
	}
}

// An API server that fails tells nothing of the name, and a look that fails is made again.
func TestTakenNameOfAServerThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		fails int // answers with an error, first
		taken bool
	}{
		"for a moment": {2, true},
		"for good":     {1 << 30, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			h, _ := ownMachine(t)
			c.node, c.lease = reported(core.ConditionTrue, core.NodeSystemInfo{MachineID: "fedc"}), leased(2)
			c.busy = tc.fails
			_, err := New(h).Issue(t.Context(), c.wants(time.Minute))
			isTaken(t, err, tc.taken)
		})
	}
}

// Who is told to stop while another machine's Lease is watched does not go on.
func TestTakenNameEndsWithItsRun(t *testing.T) {
	c := newCluster(t)
	h, _ := ownMachine(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	lease := leased(0)
	c.node = reported(core.ConditionTrue, core.NodeSystemInfo{MachineID: "fedc"})
	c.lease = func() *coordination.Lease { cancel(exitcode.ErrInterrupted); return lease() }
	if _, err := New(h).Issue(ctx, c.wants(time.Minute)); !errors.Is(err, exitcode.ErrInterrupted) {
		t.Errorf("%v", err)
	}
}

// A kubelet renews its Lease of 40 s after 10.4 s at the latest.
func TestRenewal(t *testing.T) {
	chosen, none := int32(100), int32(0)
	for want, l := range map[time.Duration]*coordination.Lease{
		12 * time.Second: {Spec: coordination.LeaseSpec{LeaseDurationSeconds: &none}},
		30 * time.Second: {Spec: coordination.LeaseSpec{LeaseDurationSeconds: &chosen}},
	} {
		if got := renewal(l); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if renewal(nil) != renewal(&coordination.Lease{}) {
		t.Error("a Lease that is not known is as no other")
	}
}

// A run that is refused changes nothing, and the next one does all. A machine whose
// certificate serves asks nobody whose its name is.
func TestRunForATakenName(t *testing.T) {
	c := newCluster(t)
	h, _ := ownMachine(t)
	c.node, c.lease = reported(core.ConditionTrue, core.NodeSystemInfo{MachineID: "fedc"}), leased(2)
	st := &desired.State{Owner: desired.OwnerNode}
	cert := c.wants(time.Minute)
	st.Add(cert, &desired.File{Path: cert.CAFile, Content: desired.Text(c.ca), Mode: 0o644, Life: desired.Managed})
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	apply := func() (int, error) {
		r, err := converge.New(converge.Options{Host: h, Providers: converge.Providers{Issuer: New(h)}, Command: "test"}).Apply(t.Context(), st)
		return len(r.Plan.Actions), err
	}
	before := theirs(h)
	_, err := apply()
	isTaken(t, err, true)
	if diff := cmp.Diff(before, theirs(h)); diff != "" {
		t.Errorf("the machine after it:\n%s", diff)
	}
	c.node = func() *core.Node { return nil }
	if n, err := apply(); err != nil || n == 0 {
		t.Errorf("%d actions, %v", n, err)
	}
	c.asks()
	c.node, c.lease = reported(core.ConditionTrue, core.NodeSystemInfo{MachineID: "fedc"}), leased(2)
	if n, err := apply(); err != nil || n != 0 || len(c.asks()) > 0 {
		t.Errorf("a second run: %d actions, %v", n, err)
	}
}

// theirs is what is on a machine besides what berth keeps of its runs.
func theirs(h clock) map[string]string {
	out := h.Tree("/")
	maps.DeleteFunc(out, func(path, _ string) bool {
		return strings.HasPrefix(path, paths.StateDir) || strings.HasPrefix(path, paths.RunDir)
	})
	return out
}
