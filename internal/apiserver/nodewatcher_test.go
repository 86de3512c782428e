package apiserver

import (
	"context"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

const (
	testUnit       = "kubelet.service"
	testKubeconfig = "/var/lib/kubelet/kubeconfig"
	testPair       = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// world is a machine and the cluster it is to join.
type world struct {
	t      *testing.T
	m      *memory.Host
	api    *httptest.Server
	ca     string
	status int // of the API server's answers; 0 is 200
	mute   bool

	nodes []*core.Node // what each look sees, in turn
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, m: memory.New()}
	w.api, w.ca = serve(t, w)
	w.m.Put("/etc/systemd/system/kubelet.service", "[Service]\nType=simple\nExecStart=/usr/bin/kubelet\nRestart=always\n", 0o644)
	w.m.Program("/usr/bin/kubelet", func(host.Command) host.Output { return host.Output{} })
	w.m.Program("/usr/bin/journalctl", func(host.Command) host.Output {
		return host.Output{Stdout: []byte("E1121 run.go: failed to load token abcdef.0123456789abcdef\nE1121 giving up\n")}
	})
	w.m.Put("/etc/kubernetes/certs/ca.crt", w.ca, 0o644)
	return w
}

func (w *world) start() *world {
	w.t.Helper()
	if err := w.m.StartUnit(w.t.Context(), testUnit); err != nil {
		w.t.Fatal(err)
	}
	return w
}

func (w *world) credential() *world {
	w.t.Helper()
	text, err := kubeconfig.ForKubelet(w.api.URL, "/etc/kubernetes/certs/ca.crt", testPair)
	if err != nil {
		w.t.Fatal(err)
	}
	certificate, key := makePair(w.t, pkix.Name{CommonName: "system:node:n1"}, "n1")
	w.m.Put(testKubeconfig, string(text), 0o600)
	w.m.Put("/var/lib/kubelet/pki/kubelet-client-1.pem", string(certificate)+string(key), 0o600)
	w.m.PutLink("/var/lib/kubelet/pki/kubelet-client-1.pem", testPair, 0)
	return w
}

// node is a Node as kubelet posts it, with the Ready condition's status.
func (w *world) node(ready core.ConditionStatus, message string) *core.Node {
	n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1", UID: types.UID("uid-1"), ResourceVersion: "7"}}
	n.Status.NodeInfo.BootID = bootID(w.m)
	n.Status.Conditions = []core.NodeCondition{{Type: core.NodeReady, Status: ready, Reason: "KubeletNotReady", Message: message,
		LastHeartbeatTime: meta.NewTime(w.m.Now().Add(time.Hour))}}
	return n
}

// ServeHTTP answers a watch of Nodes.
func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if w.mute {
		<-r.Context().Done()
		return
	}
	if w.status != 0 {
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(w.status)
		_, _ = fmt.Fprintf(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":%q,"code":%d}`, http.StatusText(w.status), w.status)
		return
	}
	if r.URL.Path != "/api/v1/nodes" || r.URL.Query().Get("fieldSelector") != "metadata.name=n1" || r.URL.Query().Get("watch") == "" {
		http.NotFound(out, r)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(out).Flush() // as the API server does
	for _, n := range w.nodes {
		n.TypeMeta = meta.TypeMeta{APIVersion: "v1", Kind: "Node"}
		raw, _ := json.Marshal(n)
		_ = json.NewEncoder(out).Encode(meta.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: raw}})
		_ = http.NewResponseController(out).Flush()
	}
	<-r.Context().Done()
}

func (w *world) watcher(healthz http.HandlerFunc) NodeWatcher {
	url := "http://127.0.0.1:1/healthz"
	if healthz != nil {
		s := httptest.NewServer(healthz)
		w.t.Cleanup(s.Close)
		url = s.URL + "/healthz"
	}
	return NodeWatcher{Host: w.m, Node: "n1", Kubeconfig: testKubeconfig, Unit: testUnit, Healthz: url}
}

func healthy(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func TestWaitForReady(t *testing.T) {
	w := newWorld(t).credential().start()
	w.nodes = []*core.Node{w.node(core.ConditionFalse, "starting"), w.node(core.ConditionTrue, "")}
	var seen []Milestone
	watcher := w.watcher(healthy)
	watcher.OnReach = func(s Milestone, _ time.Time) { seen = append(seen, s) }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := watcher.WaitFor(ctx, MilestoneReady)
	if err != nil || got.UID != "uid-1" || got.Kubelet.IsZero() || got.Registered.IsZero() || got.Ready.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
	if len(seen) != 3 {
		t.Errorf("was told of %v", seen)
	}
}

func TestWaitForKubeletAsksNoServer(t *testing.T) {
	w := newWorld(t).start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tries := 0
	got, err := w.watcher(func(out http.ResponseWriter, r *http.Request) {
		if tries++; tries < 3 {
			http.Error(out, "not yet", http.StatusInternalServerError)
			return
		}
		healthy(out, r)
	}).WaitFor(ctx, MilestoneKubelet)
	if err != nil || got.Kubelet.IsZero() || !got.Registered.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestAHeartbeatOfTheSecondOfTheStart: kubelet was restarted within the second of its
// last heartbeat, so that nothing in the Node says which of the two processes spoke.
func TestAHeartbeatOfTheSecondOfTheStart(t *testing.T) {
	for name, tc := range map[string]struct {
		arrange func(w *world, n *core.Node)
		ready   bool
	}{
		"of the process before": {func(*world, *core.Node) {}, false},
		"Ready since the start": {func(_ *world, n *core.Node) {
			n.Status.Conditions[0].LastTransitionTime = n.Status.Conditions[0].LastHeartbeatTime
		}, true},
		"the Node changes": {func(w *world, n *core.Node) {
			next := n.DeepCopy()
			next.ResourceVersion = "8"
			w.nodes = append(w.nodes, next)
		}, true},
		"the process is older": {func(w *world, _ *core.Node) { _ = w.m.Sleep(w.t.Context(), spokenAfter+time.Second) }, true},
		"a heartbeat afterwards": {func(_ *world, n *core.Node) {
			n.Status.Conditions[0].LastHeartbeatTime.Time = n.Status.Conditions[0].LastHeartbeatTime.Add(time.Second)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t).credential().start()
			u, err := w.m.Unit(t.Context(), testUnit)
			if err != nil {
				t.Fatal(err)
			}
			n := w.node(core.ConditionTrue, "")
			n.Status.Conditions[0].LastHeartbeatTime = meta.NewTime(u.ExecMainStart.Truncate(time.Second))
			n.Status.Conditions[0].LastTransitionTime = meta.NewTime(u.ExecMainStart.Add(-time.Hour))
			w.nodes = []*core.Node{n}
			tc.arrange(w, n)
			timeout := time.Minute
			if !tc.ready {
				timeout = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			if got, err := w.watcher(healthy).WaitFor(ctx, MilestoneReady); tc.ready != (err == nil) || got.Registered.IsZero() {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// waitLongEnough waits in vain, for longer if a busy machine has not got as far as the
// error that is wanted.
func waitLongEnough(t *testing.T, w NodeWatcher, until Milestone, wanted func(*MilestoneError) bool) (e *MilestoneError, ok bool, err error) {
	t.Helper()
	for _, timeout := range []time.Duration{300 * time.Millisecond, 2 * time.Second, 20 * time.Second} {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		_, err = w.WaitFor(ctx, until)
		cancel()
		if e, ok = errors.AsType[*MilestoneError](err); ok && wanted(e) {
			break
		}
	}
	return e, ok, err
}

func TestWaitForSaysWhyNot(t *testing.T) {
	const cni = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
	for _, tc := range []struct {
		name      string
		arrange   func(*world)
		healthz   http.HandlerFunc
		until     Milestone
		milestone Milestone
		reason    Reason
		detail    string
	}{
		{"no unit", func(w *world) { _ = w.m.Remove("/etc/systemd/system/kubelet.service") }, nil, MilestoneReady, MilestoneKubelet, ReasonKubeletMissing, "not-found"},
		{"not started", func(*world) {}, nil, MilestoneReady, MilestoneKubelet, ReasonKubeletNotStarted, "inactive"},
		{"sick", func(w *world) { w.start() }, func(o http.ResponseWriter, _ *http.Request) { http.Error(o, "syncloop dead", 500) }, MilestoneKubelet, MilestoneKubelet, ReasonKubeletUnhealthy, "syncloop dead"},
		{"crash", func(w *world) { w.start(); w.m.Crash(testUnit, 1) }, nil, MilestoneReady, MilestoneKubelet, ReasonKubeletCrash, "giving up"},
		{"no kubeconfig", func(w *world) { w.start() }, healthy, MilestoneReady, MilestoneRegistered, ReasonNoCredential, "kubeconfig"},
		{"no server", func(w *world) { w.credential().start().api.Close() }, healthy, MilestoneReady, MilestoneRegistered, ReasonTCP, "refused"},
		{"other CA", func(w *world) {
			certificate, _ := makePair(w.t, pkix.Name{CommonName: "ca"}, "ca")
			w.credential().start().m.Put("/etc/kubernetes/certs/ca.crt", string(certificate), 0o644)
		}, healthy, MilestoneReady, MilestoneRegistered, ReasonTLS, "unknown authority"},
		{"401", func(w *world) { w.credential().start().status = 401 }, healthy, MilestoneReady, MilestoneRegistered, ReasonUnauthorized, ""},
		{"403", func(w *world) { w.credential().start().status = 403 }, healthy, MilestoneReady, MilestoneRegistered, ReasonForbidden, ""},
		{"mute server", func(w *world) { w.credential().start().mute = true }, healthy, MilestoneReady, MilestoneRegistered, ReasonNotRegistered, "has not said yet"},
		{"no Node", func(w *world) { w.credential().start() }, healthy, MilestoneReady, MilestoneRegistered, ReasonNotRegistered, "there is no Node n1"},
		{"other machine's Node", func(w *world) {
			n := w.credential().start().node(core.ConditionTrue, "")
			n.Status.NodeInfo.BootID = "another"
			w.nodes = []*core.Node{n}
		}, healthy, MilestoneReady, MilestoneRegistered, ReasonStaleNode, "another"},
		{"no CNI", func(w *world) { w.credential().start().nodes = []*core.Node{w.node(core.ConditionFalse, cni)} }, healthy, MilestoneReady, MilestoneReady, ReasonCNINotReady, "cni plugin not initialized"},
		{"no runtime", func(w *world) {
			w.credential().start().nodes = []*core.Node{w.node(core.ConditionFalse, "container runtime is down")}
		}, healthy, MilestoneReady, MilestoneReady, ReasonRuntimeNotReady, "is down"},
		{"old heartbeat", func(w *world) {
			n := w.credential().start().node(core.ConditionTrue, "kubelet is posting ready status")
			n.Status.Conditions[0].LastHeartbeatTime = meta.NewTime(w.m.Now().Add(-time.Hour))
			w.nodes = []*core.Node{n}
		}, healthy, MilestoneReady, MilestoneReady, ReasonNotReady, "Ready=True"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tc.arrange(w)
			e, ok, err := waitLongEnough(t, w.watcher(tc.healthz), tc.until, func(e *MilestoneError) bool {
				return e.Milestone == tc.milestone && e.Reason == tc.reason && strings.Contains(e.Detail, tc.detail)
			})
			if !ok || e.Milestone != tc.milestone || e.Reason != tc.reason || !strings.Contains(e.Detail, tc.detail) {
				t.Fatalf("got %#v", err)
			}
			if e.Remedy == "" || strings.Contains(e.Error(), "abcdef.0123456789abcdef") {
				t.Errorf("hint %q, error %q", e.Remedy, e.Error())
			}
		})
	}
}

// broken is a machine with a defect.
type broken struct{ *memory.Host }

func (broken) Unit(context.Context, string) (host.UnitStatus, error) { panic("a defect") }

func TestAPanicEndsTheWait(t *testing.T) {
	w := newWorld(t)
	watcher := w.watcher(nil)
	watcher.Host = broken{w.m}
	_, err := watcher.WaitFor(t.Context(), MilestoneKubelet)
	if p, ok := errors.AsType[*converge.PanicError](err); !ok || !strings.Contains(p.Stack, "nodewatcher_test.go") {
		t.Errorf("error %v, want the panic", err)
	}
}

// away is a machine whose systemd does not answer the second question, and has
// lost the unit by the third.
type away struct {
	*memory.Host
	asked *atomic.Int32
}

func (a away) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	switch a.asked.Add(1) {
	case 1:
		return a.Host.Unit(ctx, name)
	case 2:
		return host.UnitStatus{}, fmt.Errorf("%w: connection refused", host.ErrNoSystemd)
	}
	return host.UnitStatus{LoadState: "not-found"}, nil
}

func TestTheWatchOutlivesASystemdThatIsAway(t *testing.T) {
	w := newWorld(t).start()
	watcher := w.watcher(nil)
	watcher.Host = away{w.m, &atomic.Int32{}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := watcher.WaitFor(ctx, MilestoneKubelet)
	if e, ok := errors.AsType[*MilestoneError](err); !ok || e.Reason != ReasonKubeletMissing {
		t.Errorf("got %v", err)
	}
}

func TestCrashLoop(t *testing.T) {
	start := time.Unix(0, 0)
	j := crashRule{}
	looping := func(n uint32) host.UnitStatus {
		return host.UnitStatus{LoadState: "loaded", ActiveState: "activating", SubState: "auto-restart", NRestarts: n}
	}
	if j.disposition(looping(7), start) != "" || j.disposition(looping(11), start) != "" {
		t.Error("lost too early")
	}
	if j.disposition(looping(12), start) != ReasonKubeletCrash {
		t.Error("five restarts are no crash loop")
	}
	j = crashRule{}
	failed := host.UnitStatus{LoadState: "loaded", ActiveState: "failed"}
	if j.disposition(failed, start) != "" || j.disposition(failed, start.Add(failedFor)) != ReasonKubeletCrash {
		t.Error("a unit that stays failed is not lost, or is lost at once")
	}
}

func TestRedact(t *testing.T) {
	for _, secret := range []string{"abcdef.0123456789abcdef", "Bearer abc.def", "eyJhbGciOi.eyJzdWIi.c2ln",
		"-----BEGIN EC PRIVATE KEY-----\nMHc=\n-----END EC PRIVATE KEY-----"} {
		got := redact("before " + secret + " after")
		if strings.Contains(got, secret) || !strings.HasPrefix(got, "before REDACTED#") || !strings.HasSuffix(got, " after") {
			t.Errorf("got %q", got)
		}
	}
}
