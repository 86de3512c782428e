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
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/cri"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
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

// systemUUIDFile is where a PC has what kubelet calls the system's UUID.
const systemUUIDFile = "/sys/class/dmi/id/product_uuid"

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
	m.PutDir("/usr/libexec")
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
	if _, err := converge.New(converge.Options{Host: w.m, Command: "test", Workers: 1, Providers: converge.Providers{Nodes: nodes{w}}}).Apply(w.t.Context(), nodeState(w.t, owner, more...)); err != nil {
		w.t.Fatal(err)
	}
	w.fill()
}

// fill does what kubelet and the runtime do on a node.
func (w *world) fill() {
	w.t.Helper()
	w.m.Put(azure.CacheDir+"/token", "one", 0o600)
	for _, p := range []string{"/var/lib/kubelet/pki/theirs.pem", "/var/lib/kubelet/pods/u1/etc-hosts", "/var/lib/containerd/db", "/var/lib/cni/results/r",
		"/opt/azure/containers/provision.complete", "/run/containerd/io.containerd.runtime.v2.task/k8s.io/1/init.pid"} {
		w.m.Put(p, "x", 0o600)
	}
	w.m.PutDir(ledger.VolumePlugins + "/kubelet-plugins/volume/exec")
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
			return converge.New(converge.Options{Host: w.h, Command: "test", Workers: 1, Providers: converge.Providers{Nodes: nodes{w}}}).Apply(ctx, st)
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
