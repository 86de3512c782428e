package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
)

// TestLeaveWithoutTheCluster: what only the cluster knows keeps nobody here. The Node is
// named, and nothing of the run is left.
func TestLeaveWithoutTheCluster(t *testing.T) {
	node := &desired.NodeObject{Name: "n1", Kubeconfig: kubelet.Kubeconfig, Unit: "kubelet.service", Labels: map[string]string{"pool": "a"}}
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
		"another machine":              {func(w *world) { w.object.Status.NodeInfo.MachineID = "fedc" }, "its machine id is fedc"},
		"another machine of the image": {func(w *world) { w.object.Status.NodeInfo.SystemUUID = "5d5d" }, "its system UUID is 5d5d"},
		"a machine without firmware": {func(w *world) { // kubelet says its machine id twice
			w.m.Remove(systemUUIDFile)
			w.object.Status.NodeInfo.SystemUUID = w.object.Status.NodeInfo.MachineID
		}, ""},
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
