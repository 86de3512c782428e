package join

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/cri"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/paths"
)

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
		w.before[paths.StateDir] = "drwx------ 0:0" // which is berth's own
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
