package join

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/cri"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/paths"
)

// ends are ways in which a machine comes to boot again.
var ends = map[string]func(*memory.Host){
	"a reboot":                             func(*memory.Host) {},
	"a power cut that loses all":           func(m *memory.Host) { m.PowerCut(memory.LoseAll) },
	"a power cut that keeps names":         func(m *memory.Host) { m.PowerCut(memory.NamesOnly) },
	"a power cut that loses some":          func(m *memory.Host) { m.PowerCut(2) },
	"a power cut that loses other changes": func(m *memory.Host) { m.PowerCut(3) },
}

// TestLeaveKilledBeforeABoot: whatever a run was doing when it was killed, a machine that boots
// then, with kubelet if that is still there, is given back by the next run.
func TestLeaveKilledBeforeABoot(t *testing.T) {
	for name, end := range ends {
		for bundle, force := range map[string]bool{"": true, artifact.BundleDir + "/site.bundle": false} {
			t.Run(fmt.Sprintf("%s, bundle %q, force %v", name, bundle, force), func(t *testing.T) {
				for at := 1; leaveKilledAt(t, at, end, bundle, force); at++ {
					if t.Failed() {
						t.Fatalf("killed at %d", at)
					}
				}
			})
		}
	}
}

// leaveKilledAt has a run be killed at an effect; false where there is none.
func leaveKilledAt(t *testing.T, at int, end func(*memory.Host), bundle string, force bool) bool {
	t.Helper()
	w := newWorld(t)
	w.joinForGood(bundle)
	injector := effect.Inject(w.m, effect.Plan{{At: at, Kind: effect.StopBefore}})
	w.h = injector
	_, _ = w.leave(forced, w.withCredential)
	w.h = w.m
	end(w.m)
	w.boots()
	if injector.Hit() == nil {
		w.isAsBefore()
		return false
	}
	out, err := w.leave(w.withCredential, func(o *Options) { o.Force, o.Kubeconfig = force, "/admin" })
	if err != nil || len(out.Stayed) > 0 {
		t.Errorf("killed at %s: %+v, %v", injector.Hit(), out, err)
	}
	w.isAsBefore()
	if !slices.Contains(w.log, "delete n1 1") {
		t.Errorf("killed at %s: nobody deleted the Node", injector.Hit())
	}
	return true
}

// withCredential has the Node's name be known, and its cluster be reached by kubelet's credential,
// as long as that is there.
func (w *world) withCredential(o *Options) {
	reach := o.Cluster
	o.Cluster = func(p string) (Cluster, error) {
		if _, err := w.h.ReadFile(p); err != nil && p != o.Kubeconfig {
			return nil, err
		}
		return reach(p)
	}
	o.NodeName = func(p string) (string, error) {
		if _, err := w.h.ReadFile(p); err != nil {
			return "", err
		}
		return "n1", nil
	}
}

// joinForGood makes the machine a node that is one after a boot, too.
func (w *world) joinForGood(bundle string) {
	w.t.Helper()
	const install = "[Install]\nWantedBy=multi-user.target\n"
	w.m.Put("/usr/lib/systemd/system/containerd.service", service("/usr/bin/containerd")+install, 0o644)
	if bundle != "" {
		w.m.Put(bundle, "programs", 0o600)
	}
	w.before = w.tree()
	if bundle != "" {
		w.before[paths.StateDir] = "drwx------ 0:0" // which is berth's own
	}
	st := &desired.State{Owner: desired.OwnerAKS}
	for _, r := range nodeState(w.t, desired.OwnerAKS).Resources {
		switch r := r.(type) {
		case *desired.Unit:
			r.Enablement = desired.Enabled
		case *desired.File:
			if r.Path == "/etc/systemd/system/kubelet.service" {
				r.Content = desired.Text(service("/opt/bin/kubelet") + install)
			}
		}
		st.Add(r)
	}
	if err := st.Seal(); err != nil {
		w.t.Fatal(err)
	}
	if _, err := converge.New(converge.Options{Host: w.m, Command: "test", Workers: 1, Providers: converge.Providers{Nodes: nodes{w}}}).Apply(w.t.Context(), st); err != nil {
		w.t.Fatal(err)
	}
	w.fill()
	w.m.Put(kubelet.Kubeconfig, "x", 0o600)
	w.pods = nil
	w.m.Flush()
}

// boots starts the machine, and does what kubelet and the runtime do then.
func (w *world) boots() {
	w.m.Boot()
	if !w.active(containerd.Unit) || !w.active(kubelet.Unit) {
		w.boxes = slices.DeleteFunc(w.boxes, func(cri.Sandbox) bool { return true })
		w.hasBridge = false
	}
	w.m.PutFilterNames(theirChain) // somebody starts it again
}
