package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/tempdisk"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/cri"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/host/podnet"
)

// world is a machine with what it speaks to. It writes down what is asked of others, in
// order.
type world struct {
	t      *testing.T
	m      *memory.Host
	h      host.Host
	before map[string]string
	log    []string

	mu        sync.Mutex
	pods      []core.Pod
	boxes     []cri.Sandbox
	refusals  map[string]error
	object    core.Node // what the cluster knows of the machine
	other     bool      // the administrator's kubeconfig is of another cluster than kubelet's
	away      bool
	budgets   int     // how often a disruption budget refuses
	passing   []error // what evictions come to before they are made
	hasBridge bool
	foreign   []string // what the cluster's network left
	agent     bool
}

func service(program string) string { return "[Service]\nExecStart=" + program + "\n" }

// theirChain is of a container that somebody runs with a CNI plugin, ourChain of a pod.
var (
	theirChain = host.FilterName{Family: "ip", Table: "nat", Chain: "CNI-DN-theirs"}
	ourChain   = host.FilterName{Family: "ip", Table: "nat", Chain: "CNI-DN-pod"}
)

// newWorld is a machine on which others had something before berth came.
func newWorld(t *testing.T) *world {
	t.Helper()
	m := memory.New()
	m.Put("/usr/bin/containerd", "program", 0o755)
	m.Put("/opt/bin/kubelet", "program", 0o755)
	m.Put("/usr/lib/systemd/system/containerd.service", service("/usr/bin/containerd"), 0o644)
	m.Put("/etc/containerd/config.toml", "theirs", 0o644)
	m.Put("/var/lib/kubelet/theirs/file", "x", 0o600)
	m.PutFilterNames(theirChain)
	m.PutDir("/run/berth")
	m.PutDir("/opt/azure/containers")
	m.Put("/etc/machine-id", "0123456789abcdef0123456789abcdef\n", 0o444)
	m.Put(systemUUIDFile, "4C4C4544-0001\n", 0o400)
	w := &world{t: t, m: m, h: m, refusals: map[string]error{}}
	w.object.Status.NodeInfo = core.NodeSystemInfo{MachineID: "0123456789abcdef0123456789abcdef", SystemUUID: "4c4c4544-0001"}
	w.before = w.tree()
	return w
}

// tree is the machine without what a boot takes away.
func (w *world) tree() map[string]string {
	tree := w.m.Tree("/")
	for p := range tree {
		if p == "/run" || strings.HasPrefix(p, "/run/") {
			delete(tree, p)
		}
	}
	return tree
}

// nodeState makes a machine a node.
func nodeState(t *testing.T, owner desired.Owner, more ...desired.Resource) *desired.State {
	t.Helper()
	st := &desired.State{Owner: owner}
	st.Add(
		&desired.File{Path: "/etc/systemd/system/kubelet.service", Content: desired.Text(service("/opt/bin/kubelet")), Mode: 0o644, Life: desired.Managed},
		&desired.File{Path: "/etc/containerd/config.toml", Content: desired.Text("ours"), Mode: 0o644, Life: desired.Managed},
		&desired.File{Path: "/var/lib/kubelet/pki/ours", Content: desired.Text("ours"), Mode: 0o644, Life: desired.Managed},
		&desired.Unit{Name: "containerd.service", Activation: desired.Started},
		&desired.Unit{Base: desired.Base{After: []desired.ID{"unit:containerd.service"}}, Name: "kubelet.service", Activation: desired.Started},
	)
	st.Add(more...)
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	return st
}

// join makes the machine a node, and does what kubelet and the runtime do then.
func (w *world) join(owner desired.Owner, more ...desired.Resource) {
	w.t.Helper()
	if _, err := converge.New(converge.Options{Host: w.m, Command: "test", Workers: 1, Nodes: nodes{w}}).Apply(w.t.Context(), nodeState(w.t, owner, more...)); err != nil {
		w.t.Fatal(err)
	}
	w.m.Put(azure.CacheDir+"/token", "one", 0o600)
	for _, p := range []string{"/var/lib/kubelet/pki/theirs.pem", "/var/lib/kubelet/pods/u1/etc-hosts", "/var/lib/containerd/db", "/var/lib/cni/results/r",
		"/opt/azure/containers/provision.complete", "/run/containerd/io.containerd.runtime.v2.task/k8s.io/1/init.pid"} {
		w.m.Put(p, "x", 0o600)
	}
	w.m.PutDir("/var/lib/kubelet/pods/u1/volumes/token")
	if err := w.m.Mount(w.t.Context(), host.Mount{Source: "tmpfs", Target: "/var/lib/kubelet/pods/u1/volumes/token", Type: "tmpfs"}); err != nil {
		w.t.Fatal(err)
	}
	w.boxes = []cri.Sandbox{{ID: "1", Namespace: "default", Name: "web", Ready: true}}
	w.pods = []core.Pod{pod("web", "")}
	w.hasBridge = true
	w.m.PutFilterNames(ourChain)
}

func pod(name, daemonset string) core.Pod {
	p := core.Pod{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("u-" + name)}}
	if daemonset != "" {
		yes := true
		p.OwnerReferences = []meta.OwnerReference{{Kind: "DaemonSet", Name: daemonset, Controller: &yes}}
	}
	return p
}

func (w *world) call(what string) error {
	if _, err := w.h.Lstat("/"); err != nil {
		return err // the process has been killed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, what)
	return w.refusals[what]
}

// Sandboxes implements Runtime.
func (w *world) Sandboxes(context.Context) ([]cri.Sandbox, error) { return w.boxes, w.call("list") }

// Remove implements Runtime.
func (w *world) Remove(_ context.Context, id string, _ time.Duration) error {
	err := w.call("end " + id)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.boxes = slices.DeleteFunc(slices.Clone(w.boxes), func(s cri.Sandbox) bool { return s.ID == id })
	}
	return err
}

// Close implements Runtime and Cluster.
func (w *world) Close() {}

// ListPods implements Cluster.
func (w *world) ListPods(_ context.Context, node string) ([]core.Pod, error) {
	if node != "n1" {
		return nil, fmt.Errorf("pods of %q", node)
	}
	return w.pods, nil
}

// Evict implements Cluster.
func (w *world) Evict(_ context.Context, p *core.Pod) error {
	if w.budgets > 0 {
		w.budgets--
		return apierrors.NewTooManyRequests("budget", 0)
	}
	if len(w.passing) > 0 {
		err := w.passing[0]
		w.passing = w.passing[1:]
		return err
	}
	err := w.call("evict " + p.Name)
	if err == nil {
		w.pods = slices.DeleteFunc(slices.Clone(w.pods), func(q core.Pod) bool { return q.Name == p.Name })
	}
	return err
}

// PatchNode implements Cluster.
func (w *world) PatchNode(_ context.Context, name string, patch []byte) (*core.Node, error) {
	return nil, w.call("patch " + name + " " + string(patch))
}

// GetNode implements Cluster.
func (w *world) GetNode(_ context.Context, name string) (*core.Node, error) {
	if err := w.refusals["get "+name]; err != nil {
		return nil, err
	}
	n := w.object
	n.Name, n.UID = name, "1"
	return &n, nil
}

// DeleteNode implements Cluster.
func (w *world) DeleteNode(_ context.Context, name, uid string) error {
	return w.call("delete " + name + " " + uid)
}

// network is the world's.
type network struct{ *world }

// Remove implements the network of Options.
func (n network) Remove(_ context.Context, before podnet.Before) ([]string, error) {
	if !n.hasBridge {
		return nil, nil
	}
	err := n.call("network " + strings.Join(before.Links, ","))
	if err == nil {
		n.hasBridge = false
		n.m.DropFilterNames(func(f host.FilterName) bool { return strings.HasPrefix(f.Chain, "CNI-") && !before.Filter[f.String()] })
	}
	return []string{"interface cbr0"}, err
}

// Foreign implements the network of Options.
func (n network) Foreign(_ context.Context, before podnet.Before) ([]string, error) {
	return n.foreign, n.refusals["foreign "+strings.Join(before.Links, ",")]
}

// nodes is how the engine reaches the world's Node.
type nodes struct{ *world }

// Open implements the Nodes of the engine.
func (n nodes) Open(string, string) (converge.NodeSession, error) { return n, nil }

// Get implements converge.NodeSession.
func (n nodes) Get(context.Context) (*converge.NodeState, error) {
	if n.away {
		return nil, errors.New("the API server is away")
	}
	return &converge.NodeState{UID: "1", Labels: map[string]string{"pool": "a"}}, nil
}

// Label implements converge.NodeSession.
func (n nodes) Label(ctx context.Context, _ string, _ map[string]*string) (*converge.NodeState, error) {
	return n.Get(ctx)
}

// Await implements converge.NodeSession.
func (n nodes) Await(ctx context.Context) (*converge.NodeState, error) { return n.Get(ctx) }

func (w *world) options() Options {
	return Options{
		Host: w.h, DrainTimeout: time.Minute, AgentOwner: desired.OwnerOSC, AgentThere: func() (bool, error) { return w.agent, nil }, AgentUnit: "gardener-node-agent.service", Command: "test", Network: network{w}, Say: func(string) {},
		Apply: func(ctx context.Context, st *desired.State) (*converge.Result, error) {
			return converge.New(converge.Options{Host: w.h, Command: "test", Workers: 1, Nodes: nodes{w}}).Apply(ctx, st)
		},
		Reset: func(context.Context) ([]string, error) { return nil, w.call("reset the agent") },
		Runtime: func(context.Context) (Runtime, error) {
			if s, err := w.h.Unit(w.t.Context(), containerd.Unit); err != nil || s.ActiveState != "active" {
				return nil, errors.Join(errors.New("the runtime does not run"), err)
			}
			return w, nil
		},
		Cluster: func(string) (Cluster, error) {
			if w.away {
				return nil, errors.New("the API server is away")
			}
			return w, nil
		},
		NodeName:    func(string) (string, error) { return "n1", nil },
		SameCluster: func(string, string) (bool, error) { return !w.other, nil },
	}
}

func (w *world) leave(edit ...func(*Options)) (Outcome, error) {
	w.t.Helper()
	o := w.options()
	for _, f := range edit {
		f(&o)
	}
	return Leave(w.t.Context(), o)
}

func forced(o *Options) { o.Force, o.Kubeconfig = true, "/admin" }

func (w *world) active(unit string) bool {
	s, err := w.m.Unit(w.t.Context(), unit)
	return err == nil && s.ActiveState == "active"
}

// isAsBefore proves that nothing of the node is left.
func (w *world) isAsBefore() {
	w.t.Helper()
	if diff := cmp.Diff(w.before, w.tree()); diff != "" {
		w.t.Error(diff)
	}
	if w.active("kubelet.service") || w.active("containerd.service") || len(w.boxes) > 0 || w.hasBridge {
		w.t.Errorf("something runs still: %+v", w.boxes)
	}
	if mounts, _ := w.m.Mounts(w.t.Context()); len(mounts) != 1 {
		w.t.Error(mounts)
	}
	names, err := w.m.FilterNames(w.t.Context())
	if diff := cmp.Diff([]host.FilterName{theirChain}, names); diff != "" || err != nil {
		w.t.Errorf("the packet filter: %s %v", diff, err)
	}
	if names, err := w.m.ReadDir(azure.CacheDir); err == nil {
		w.t.Errorf("tokens stay: %q", names)
	}
}

// TestLeave: what others had stays, all else goes, in the order in which each part
// still has what it needs.
func TestLeave(t *testing.T) {
	for name, bundle := range map[string]string{"": "", "with a bundle": artifact.BundleDir + "/site.bundle"} {
		t.Run(name, func(t *testing.T) { leavesAndJoins(t, bundle) })
	}
}

// leavesAndJoins: a bundle that somebody put on the machine stays there.
func leavesAndJoins(t *testing.T, bundle string) {
	w := newWorld(t)
	if bundle != "" {
		w.m.Put(bundle, "programs", 0o600)
		w.before = w.tree()
		w.before[ledger.StateDir] = "drwx------ 0:0" // which is berth's own
	}
	if out, err := w.leave(); err != nil || !out.Nothing {
		t.Errorf("a machine without berth: %+v, %v", out, err)
	}
	w.join(desired.OwnerAKS)
	out, err := w.leave(forced)
	if err != nil || out.Nothing || len(out.Stayed) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	w.isAsBefore()
	want := []string{`patch n1 {"spec":{"unschedulable":true}}`, "evict web", "list", "end 1", "network ", "delete n1 1"}
	if diff := cmp.Diff(want, w.log); diff != "" {
		t.Error(diff)
	}
	if out, err := w.leave(forced); err != nil || !out.Nothing {
		t.Errorf("again: %+v, %v", out, err)
	}
	w.join(desired.OwnerAKS)
	if _, err := w.leave(forced); err != nil {
		t.Error(err)
	}
	w.isAsBefore()
}

// What was made in Azure is undone when the node has ended, while its document is in force
// and before its Node goes, and by its own document's withdrawal alone.
func TestLeaveUndoesAzure(t *testing.T) {
	w := newWorld(t)
	undo := func(stayed ...error) func(*Options) {
		return func(o *Options) {
			forced(o)
			o.Unregister = func(context.Context, func(string)) []error {
				has := "without"
				if _, err := w.m.ReadFile("/etc/systemd/system/kubelet.service"); err == nil {
					has = "with"
				}
				w.log = append(w.log, "azure, "+has+" the document")
				return stayed
			}
		}
	}
	w.join(desired.OwnerNode)
	out, err := w.leave(undo())
	if err != nil || len(out.Stayed) > 0 || len(w.log) < 3 || !slices.Equal(w.log[len(w.log)-3:], []string{"network ", "azure, with the document", "delete n1 1"}) {
		t.Errorf("%+v, %v, %q", out, err, w.log)
	}
	w.join(desired.OwnerNode)
	why := &exitcode.Error{Err: errors.New("the machine x"), Remedy: "Give it the role."}
	if out, err := w.leave(undo(fmt.Errorf("%w", why))); err != nil || !strings.Contains(strings.Join(out.Stayed, "\n"), "undo what was made in Azure: the machine x. Give it the role.") {
		t.Errorf("%+v, %v", out, err)
	}
	w.join(desired.OwnerAKS)
	w.log = nil
	if _, err := w.leave(undo(), func(o *Options) { o.Owner = desired.OwnerAKS }); err != nil || strings.Contains(strings.Join(w.log, "\n"), "azure") {
		t.Errorf("another's document went: %v, %q", err, w.log)
	}
}

// A join that was cut off before it came to the machine itself has made things in Azure.
func TestLeaveUndoesAzureAlone(t *testing.T) {
	w := newWorld(t)
	w.m.PutDir("/var/lib/berth")
	asked := false
	if out, err := w.leave(func(o *Options) {
		o.Unregister = func(context.Context, func(string)) []error { asked = true; return nil }
	}); err != nil || out.Nothing || len(out.Stayed) > 0 || !asked {
		t.Errorf("%+v, %v, asked: %v", out, err, asked)
	}
}

// What is still in Azure is remembered, and the next leave asks again; the rest of
// berth's state goes, so that nothing of a node is looked for once more.
func TestLeaveTriesAzureAgain(t *testing.T) {
	for _, owner := range []desired.Owner{"", desired.OwnerNode} {
		w := newWorld(t)
		w.join(desired.OwnerNode)
		w.m.Put(azure.MadePath, "{}", 0o600)
		no := errors.New("away")
		asked := 0
		leave := func() (Outcome, error) {
			return w.leave(forced, func(o *Options) {
				o.Owner = owner
				o.Unregister = func(context.Context, func(string)) []error {
					if asked++; no != nil {
						return []error{no}
					}
					w.m.Remove(azure.MadePath)
					return nil
				}
			})
		}
		out, err := leave()
		if err != nil || !out.InAzure || len(out.Stayed) != 2 || !strings.HasPrefix(out.Stayed[1], azure.MadePath+": ") {
			t.Fatalf("%+v, %v", out, err)
		}
		if names, err := w.m.ReadDir("/var/lib/berth"); err != nil || len(names) != 1 {
			t.Errorf("%q, %v", names, err)
		}
		w.log, no = nil, nil
		if out, err := leave(); err != nil || out.Nothing || out.InAzure || len(out.Stayed) > 0 || asked != 2 || len(w.log) > 0 {
			t.Errorf("%+v, %v, asked %d times, %q", out, err, asked, w.log)
		}
		if _, err := w.m.Lstat("/var/lib/berth"); err == nil {
			t.Error("berth's state stays")
		}
	}
}

// TestLeaveRefuses: pods of others are a reason to stay, as far as anybody knows of
// them.
func TestLeaveRefuses(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pods   []core.Pod
		boxes  []cri.Sandbox
		away   bool
		refuse string
	}{
		{"a pod", []core.Pod{pod("web", ""), pod("proxy", "proxies")}, nil, false, "1 pod runs on this machine: default/web"},
		{"only a DaemonSet's", []core.Pod{pod("proxy", "proxies")}, nil, false, ""},
		{"an ended one", []core.Pod{{Status: core.PodStatus{Phase: core.PodSucceeded}}}, nil, false, ""},
		{"a static one", []core.Pod{{ObjectMeta: meta.ObjectMeta{Annotations: map[string]string{core.MirrorPodAnnotationKey: "x"}}}}, nil, false, ""},
		{"asked of the runtime", nil, []cri.Sandbox{{ID: "1", Namespace: "a", Name: "b", Ready: true}}, true, "1 pod runs on this machine: a/b"},
		{"containers of one pod, asked of the runtime", nil, []cri.Sandbox{{ID: "1", Namespace: "a", Name: "b", Ready: true}, {ID: "2", Namespace: "a", Name: "a", Ready: true}, {ID: "3", Namespace: "a", Name: "b", Ready: true}}, true, "2 pods run on this machine: a/a, a/b"},
		{"static, asked of the runtime", nil, []cri.Sandbox{{ID: "1", Ready: true, Static: true}, {ID: "2"}}, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.join(desired.OwnerAKS)
			w.pods, w.boxes, w.away = tc.pods, tc.boxes, tc.away
			joined := w.tree()
			_, err := w.leave()
			if tc.refuse == "" {
				if err != nil {
					t.Error(err)
				}
				w.isAsBefore()
				return
			}
			e, ok := errors.AsType[*PodsError](err)
			if !ok || e.Error() != tc.refuse || !strings.Contains(e.Hint(), "--force") {
				t.Errorf("%v", err)
			}
			if diff := cmp.Diff(joined, w.tree()); diff != "" || !w.active("kubelet.service") {
				t.Errorf("the machine was changed: %s", diff)
			}
		})
	}
}

// TestLeaveNamesWhatStayed: each part that fails is named, and the rest is done.
func TestLeaveNamesWhatStayed(t *testing.T) {
	no := errors.New("no")
	w := newWorld(t)
	w.join(desired.OwnerAKS)
	w.refusals = map[string]error{"end 1": no, "network ": no, "delete n1 1": no}
	w.foreign = []string{"interface flannel.1: ip link delete flannel.1"}
	out, err := w.leave(forced)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"end pod default/web: no", "clear the network: no", w.foreign[0], "delete Node n1: no"} {
		if i >= len(out.Stayed) || out.Stayed[i] != want {
			t.Errorf("%q, want %q", out.Stayed, want)
		}
	}
	if diff := cmp.Diff(w.before, w.tree()); diff != "" {
		t.Error(diff)
	}
}

// TestLeaveKeepsWhatOthersMounted: neither a mount nor what is in it is touched.
func TestLeaveKeepsWhatOthersMounted(t *testing.T) {
	w := newWorld(t)
	w.join(desired.OwnerAKS)
	w.m.PutDir("/var/lib/kubelet/disk")
	if err := w.m.Mount(t.Context(), host.Mount{Source: "tmpfs", Target: "/var/lib/kubelet/disk", Type: "tmpfs"}); err != nil {
		t.Fatal(err)
	}
	w.m.Put("/var/lib/kubelet/disk/data", "precious", 0o600)
	if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if data, err := w.m.ReadFile("/var/lib/kubelet/disk/data"); string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestLeaveUnmounts: what kubelet and the runtime mounted for pods goes. What stood at
// such a place before berth came stays, and so does what other containers have.
// watched says what is in kubelet's directory when a unit stops.
type watched struct {
	host.Host
	unit string
	seen [][]string
}

func (h *watched) StopUnit(ctx context.Context, name string) error {
	if name == h.unit {
		names, err := h.ReadDir("/var/lib/kubelet/pods/u1")
		if err != nil {
			return err
		}
		h.seen = append(h.seen, names)
	}
	return h.Host.StopUnit(ctx, name)
}

// What the temporary disk gives back comes to the disk of the system, and goes from there
// with the rest: its service stops before.
func TestLeaveTakesTheTemporaryDiskAway(t *testing.T) {
	w := newWorld(t)
	w.join(desired.OwnerAKS,
		&desired.File{Path: "/etc/systemd/system/" + tempdisk.Unit, Content: desired.Text("[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/opt/bin/kubelet\n"), Mode: 0o644, Life: desired.Managed},
		&desired.Unit{Base: desired.Base{After: []desired.ID{"file:/etc/systemd/system/" + tempdisk.Unit}}, Name: tempdisk.Unit, Activation: desired.Started})
	if !w.active(tempdisk.Unit) {
		t.Fatal("it does not run")
	}
	h := &watched{Host: w.h, unit: tempdisk.Unit}
	w.h = h
	if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if diff := cmp.Diff([][]string{{"etc-hosts", "volumes"}}, h.seen); diff != "" {
		t.Error(diff)
	}
	w.isAsBefore()
}

func TestLeaveUnmounts(t *testing.T) {
	const tasks = "/run/containerd/io.containerd.runtime.v2.task/"
	for _, tc := range []struct {
		target       string
		before, stay bool
	}{
		{target: tasks + "k8s.io/2/rootfs"},
		{target: "/run/containerd/io.containerd.grpc.v1.cri/sandboxes/2/shm"},
		{target: "/run/netns/cni-2"},
		{target: "/var/lib/kubelet/plugins/kubernetes.io/csi/disk"},
		{target: "/var/lib/kubelet/pods/u2/volumes/token"},
		{target: tasks + "default/nerdctl/rootfs", before: true, stay: true},
		{target: tasks + "default/later/rootfs", stay: true},
		{target: "/run/netns/cni-theirs", before: true, stay: true},
		{target: "/var/lib/kubelet/plugins/theirs", before: true, stay: true},
		{target: tasks + "k8s.io/theirs/rootfs", before: true, stay: true},
	} {
		t.Run(tc.target, func(t *testing.T) {
			w := newWorld(t)
			mount := func() {
				w.m.PutDir(tc.target)
				if err := w.m.Mount(t.Context(), host.Mount{Source: "tmpfs", Target: tc.target, Type: "tmpfs"}); err != nil {
					t.Fatal(err)
				}
			}
			if tc.before {
				mount()
			}
			w.join(desired.OwnerAKS)
			if !tc.before {
				mount()
			}
			if _, err := w.leave(forced); err != nil {
				t.Error(err)
			}
			mounts, err := w.m.Mounts(t.Context())
			if stays := slices.ContainsFunc(mounts, func(m host.Mount) bool { return m.Target == tc.target }); err != nil || stays != tc.stay {
				t.Errorf("stays: %v, %v", stays, err)
			}
		})
	}
}

// TestLeaveOfOneOwner: as long as another document wants kubelet, the machine is a node.
func TestLeaveOfOneOwner(t *testing.T) {
	w := newWorld(t)
	w.join(desired.OwnerAKS)
	w.join(desired.OwnerNode, &desired.File{Path: "/etc/more", Content: desired.Text("x"), Mode: 0o644, Life: desired.Managed})
	of := func(owner desired.Owner) func(*Options) {
		return func(o *Options) { forced(o); o.Owner = owner }
	}
	if out, err := w.leave(of(desired.OwnerOSC)); err != nil || !out.Nothing {
		t.Errorf("an owner that has nothing: %+v, %v", out, err)
	}
	if out, err := w.leave(of(desired.OwnerNode)); err != nil || len(out.Stayed) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := w.m.Lstat("/etc/more"); err == nil || !w.active("kubelet.service") || len(w.log) > 0 {
		t.Errorf("%v, asked %v", err, w.log)
	}
	if out, err := w.leave(of(desired.OwnerAKS)); err != nil || len(out.Stayed) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	w.isAsBefore()
}

// TestLeaveTakesTheAgentAway: also where nothing of its documents is on the machine; with one
// owner's it goes only if they are that one's.
func TestLeaveTakesTheAgentAway(t *testing.T) {
	for name, tc := range map[string]struct {
		joined, left desired.Owner
		agent, gone  bool
	}{
		"no agent":                    {joined: desired.OwnerAKS},
		"an agent without a document": {joined: desired.OwnerAKS, agent: true, gone: true},
		"documents without an agent":  {joined: desired.OwnerOSC, gone: true},
		"another owner's documents":   {joined: desired.OwnerAKS, left: desired.OwnerAKS, agent: true},
		"the agent's documents":       {joined: desired.OwnerOSC, left: desired.OwnerOSC, agent: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.join(tc.joined)
			w.agent = tc.agent
			if out, err := w.leave(forced, func(o *Options) { o.Owner = tc.left }); err != nil || len(out.Stayed) > 0 {
				t.Errorf("%+v, %v", out, err)
			}
			if gone := slices.Contains(w.log, "reset the agent"); gone != tc.gone {
				t.Errorf("asked %q", w.log)
			}
		})
	}
}

// TestLeaveTokens: they go with the identity that they are of, also where another
// document keeps the machine a node or something stays.
func TestLeaveTokens(t *testing.T) {
	identity := &desired.File{Path: azureidentity.Path, Content: desired.Text("{}"), Mode: 0o600, Life: desired.Managed}
	for name, tc := range map[string]struct {
		first, second []desired.Resource
		fails         bool
		gone          bool
	}{
		"with its document": {nil, []desired.Resource{identity}, false, true},
		"the other's":       {[]desired.Resource{identity}, nil, false, false},
		"something stays":   {nil, []desired.Resource{identity}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.join(desired.OwnerAKS, tc.first...)
			w.join(desired.OwnerNode, tc.second...)
			out, err := w.leave(forced, func(o *Options) {
				o.Owner = desired.OwnerNode
				if !tc.fails {
					return
				}
				o.Owner = ""
				apply := o.Apply
				o.Apply = func(ctx context.Context, st *desired.State) (*converge.Result, error) {
					if st.Owner == desired.OwnerAKS {
						return nil, errors.New("no")
					}
					return apply(ctx, st)
				}
			})
			if err != nil || (len(out.Stayed) > 0) != tc.fails {
				t.Errorf("%+v, %v", out, err)
			}
			if _, err := w.m.Lstat(azure.CacheDir); (err != nil) != tc.gone {
				t.Errorf("the tokens: %v", err)
			}
		})
	}
}

// TestDrain: a pod that a disruption budget keeps is asked for again, and one that does
// not go in time is named and ended all the same.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	w.join(desired.OwnerAKS)
	w.budgets = 3
	if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 || !slices.Contains(w.log, "evict web") {
		t.Errorf("%+v, %v, asked %v", out, err, w.log)
	}
	w = newWorld(t)
	w.join(desired.OwnerAKS)
	w.budgets = 1 << 30
	out, err := w.leave(forced, func(o *Options) { o.DrainTimeout = time.Second / 2 })
	if err != nil || len(out.Stayed) != 1 || !strings.Contains(out.Stayed[0], "pod default/web was ended without the cluster, since it was not gone in 500ms") {
		t.Errorf("%+v, %v", out, err)
	}
	w.isAsBefore()
}

// TestEvictionFailsOnce: a server that could not evict a pod is asked again; where it never
// can, what it said last is told.
func TestEvictionFailsOnce(t *testing.T) {
	for name, err := range map[string]error{
		"its own fault": apierrors.NewInternalError(errors.New("etcd")), "busy": apierrors.NewServiceUnavailable("wait"), "not reached": errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.join(desired.OwnerAKS)
			w.passing = []error{err, err}
			if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 || len(w.pods) > 0 || len(w.passing) > 0 {
				t.Errorf("%+v, %v, asked %v", out, err, w.log)
			}
			w = newWorld(t)
			w.join(desired.OwnerAKS)
			w.refusals["evict web"] = err
			out, _ := w.leave(forced, func(o *Options) { o.DrainTimeout = time.Second / 2 })
			if len(out.Stayed) != 2 || out.Stayed[0] != "evict pod default/web: "+err.Error() {
				t.Errorf("%q", out.Stayed)
			}
		})
	}
}

// TestLeaveTellsOfCordon: a Node that nobody may delete stays cordoned, which is said, also by
// a run that continues another.
func TestLeaveTellsOfCordon(t *testing.T) {
	w := newWorld(t)
	w.join(desired.OwnerAKS)
	const line = "Node n1 is still in the cluster: kubectl delete node n1; it is cordoned: kubectl uncordon n1 if the machine joins again"
	o := w.options()
	o.Force = true
	ctx, cancel := context.WithCancel(t.Context())
	o.Say = func(said string) {
		if said == "evicted pod default/web" {
			cancel()
		}
	}
	if _, err := Leave(ctx, o); err == nil {
		t.Error("it was not cut off")
	}
	out, err := w.leave(func(o *Options) { o.Force = true })
	if err != nil || !slices.Equal(out.Stayed, []string{line}) {
		t.Errorf("%q, %v", out.Stayed, err)
	}
}

// TestDrainRefused: where each pod that is left was refused for good nobody waits for what
// will not come; beside one that may still go they are waited for.
func TestDrainRefused(t *testing.T) {
	for name, c := range map[string]struct {
		refusal error
		budgets int
		waits   bool
	}{
		"by a right":         {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("no")), 0, false},
		"by a webhook":       {apierrors.NewBadRequest("admission webhook denied the request"), 0, false},
		"by a budget, first": {apierrors.NewBadRequest("admission webhook denied the request"), 2, false},
		"by nobody":          {apierrors.NewInternalError(errors.New("etcd")), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.join(desired.OwnerAKS)
			w.refusals["evict web"], w.budgets = c.refusal, c.budgets
			out, err := w.leave(forced, func(o *Options) {
				o.DrainTimeout = time.Hour
				if c.waits {
					o.DrainTimeout = time.Second / 2
				}
			})
			want := "pod default/web was ended without the cluster, which does not evict it"
			if c.waits {
				want = "pod default/web was ended without the cluster, since it was not gone in 500ms"
			}
			if err != nil || len(out.Stayed) != 2 || out.Stayed[1] != want {
				t.Errorf("%v, %q", err, out.Stayed)
			}
			w.isAsBefore()
		})
	}
}

// TestLeaveKilledAnywhere: whatever a run was doing when it was killed, the next one
// ends it, and asks nobody twice for what was done.
func TestLeaveKilledAnywhere(t *testing.T) {
	for _, kind := range []effect.Kind{effect.StopBefore, effect.StopAfter} {
		for at := 1; ; at++ {
			w := newWorld(t)
			w.join(desired.OwnerAKS)
			injector := effect.Inject(w.m, effect.Plan{{At: at, Kind: kind}})
			w.h = injector
			_, _ = w.leave(forced)
			if injector.Hit() == nil {
				if at < 20 {
					t.Errorf("only %d effects", at)
				}
				break
			}
			w.h = w.m
			out, err := w.leave(forced)
			if err != nil || len(out.Stayed) > 0 {
				t.Errorf("killed at %s: %+v, %v", injector.Hit(), out, err)
			}
			w.isAsBefore()
			if n := len(slices.DeleteFunc(slices.Clone(w.log), func(s string) bool { return s != "delete n1 1" })); n == 0 {
				t.Errorf("killed at %s: nobody deleted the Node", injector.Hit())
			}
			if t.Failed() {
				t.Fatalf("killed at %s", injector.Hit())
			}
		}
	}
}

// TestLeaveAfterAJoinThatWasKilled: what a join found stays known when it was killed and
// pods ran before the next one.
func TestLeaveAfterAJoinThatWasKilled(t *testing.T) {
	for _, kind := range []effect.Kind{effect.StopBefore, effect.StopAfter} {
		for at := 1; ; at++ {
			w := newWorld(t)
			injector := effect.Inject(w.m, effect.Plan{{At: at, Kind: kind}})
			st := nodeState(t, desired.OwnerAKS)
			_, _ = converge.New(converge.Options{Host: injector, Command: "test", Workers: 1, Nodes: nodes{w}}).Apply(t.Context(), st)
			if injector.Hit() == nil {
				if at < 20 {
					t.Errorf("only %d effects", at)
				}
				break
			}
			if w.active("kubelet.service") {
				w.m.PutFilterNames(ourChain)
			}
			w.join(desired.OwnerAKS)
			if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 {
				t.Errorf("%+v, %v", out, err)
			}
			w.isAsBefore()
			if t.Failed() {
				t.Fatalf("killed at %s", injector.Hit())
			}
		}
	}
}

// almostLeft is a machine that a run has left, but for berth's own state.
func almostLeft(t *testing.T) *world {
	t.Helper()
	for at := 1; ; at++ {
		w := newWorld(t)
		w.join(desired.OwnerAKS)
		injector := effect.Inject(w.m, effect.Plan{{At: at, Kind: effect.StopBefore}})
		w.h = injector
		_, _ = w.leave(forced)
		w.h = w.m
		if text, err := w.m.ReadFile(recordPath); err == nil && strings.Contains(string(text), `"done":true`) {
			return w
		}
		if injector.Hit() == nil {
			t.Fatal("there is no such moment")
		}
	}
}

// TestLeaveOfAMachineThatCameBack: where a run that had only berth's own state to remove
// was cut off, and another document made the machine a node since, all of that goes.
func TestLeaveOfAMachineThatCameBack(t *testing.T) {
	w := almostLeft(t)
	j := newJoiner(t)
	j.world = w
	if _, err := j.join(); err == nil || !strings.Contains(err.Error(), "on its way out") {
		t.Errorf("before: %v", err)
	}
	w.join(desired.OwnerAKS)
	if _, err := j.join(); err != nil {
		t.Error(err)
	}
	if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	w.isAsBefore()
}

// TestLeaveWithoutTheCluster: what only the cluster knows keeps nobody here. The Node is
// named, and nothing of the run is left.
func TestLeaveWithoutTheCluster(t *testing.T) {
	node := &desired.NodeObject{Name: "n1", Kubeconfig: kubeconfigs[0], Unit: "kubelet.service", Labels: map[string]string{"pool": "a"}}
	for name, c := range map[string]struct {
		edit func(*Options)
		want string
	}{
		"nobody may delete":    {func(o *Options) { o.Kubeconfig = "" }, "Node n1 is still in the cluster: kubectl delete node n1"},
		"somebody may":         {func(*Options) {}, "delete Node n1: the API server is away"},
		"its name is not told": {func(o *Options) { o.NodeName = func(string) (string, error) { return "", errors.New("torn") } }, "Node n1 may be in the cluster still"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.join(desired.OwnerAKS, node)
			w.away = true
			out, err := w.leave(forced, c.edit)
			if err != nil || len(out.Stayed) == 0 || !strings.Contains(out.Stayed[len(out.Stayed)-1], c.want) {
				t.Errorf("%+v, %v", out, err)
			}
			w.isAsBefore()
		})
	}
}

// TestLeaveOfAnotherMachinesNode: a kubeconfig of a cluster in which another machine has
// this one's name is refused before anything is touched, also by a run that goes on.
func TestLeaveOfAnotherMachinesNode(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("no"))
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n1")
	for name, c := range map[string]struct {
		edit    func(*world)
		refused string
	}{
		"another machine":                  {func(w *world) { w.object.Status.NodeInfo.MachineID = "fedc" }, "its machine id is fedc"},
		"another machine of the image":     {func(w *world) { w.object.Status.NodeInfo.SystemUUID = "5d5d" }, "its system UUID is 5d5d"},
		"a machine without firmware":       {func(w *world) { w.m.Remove(systemUUIDFile) }, ""},
		"one that never reported, at home": {func(w *world) { w.object.Status.NodeInfo = core.NodeSystemInfo{} }, ""},
		"one that never reported, elsewhere": {func(w *world) {
			w.object.Status.NodeInfo, w.other = core.NodeSystemInfo{}, true
		}, "says nothing of its machine"},
		"may not be asked":     {func(w *world) { w.refusals["get n1"] = forbidden }, "forbidden"},
		"not there, elsewhere": {func(w *world) { w.refusals["get n1"], w.other = gone, true }, "it is not in this cluster"},
	} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/begun=%t", name, begun), func(t *testing.T) {
				w := newWorld(t)
				w.join(desired.OwnerAKS)
				if begun {
					w.m.Put(recordPath, `{"node":"n1"}`, 0o600)
				}
				c.edit(w)
				joined := w.tree()
				out, err := w.leave(forced)
				if c.refused == "" {
					if err != nil || len(out.Stayed) > 0 || !slices.Contains(w.log, "delete n1 1") {
						t.Errorf("%+v, %v, asked %q", out, err, w.log)
					}
					return
				}
				e, ok := errors.AsType[*exitcode.Error](err)
				if !ok || e.At != "--kubeconfig /admin" || e.Remedy == "" || !strings.Contains(e.Error(), c.refused) {
					t.Errorf("%v", err)
				}
				if diff := cmp.Diff(joined, w.tree()); diff != "" || len(w.log) > 0 || !w.active("kubelet.service") {
					t.Errorf("something was done: %q\n%s", w.log, diff)
				}
			})
		}
	}
}

// A Node that is not there, or that another machine came to have since, is not deleted.
func TestLeaveDeletesOnlyItsNode(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n1")
	w := newWorld(t)
	w.join(desired.OwnerAKS)
	w.refusals["get n1"] = gone
	if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 || slices.Contains(w.log, "delete n1 1") {
		t.Errorf("%+v, %v, asked %q", out, err, w.log)
	}
	w = newWorld(t)
	w.join(desired.OwnerAKS)
	w.refusals["get n1"] = errors.New("away")
	out, err := w.leave(forced, func(o *Options) {
		apply := o.Apply
		o.Apply = func(ctx context.Context, st *desired.State) (*converge.Result, error) {
			delete(w.refusals, "get n1")
			w.object.Status.NodeInfo.MachineID = "fedc"
			return apply(ctx, st)
		}
	})
	if err != nil || len(out.Stayed) != 1 || !strings.Contains(out.Stayed[0], "is not this machine's") || slices.Contains(w.log, "delete n1 1") {
		t.Errorf("%+v, %v, asked %q", out, err, w.log)
	}
	w.isAsBefore()
}
