package join

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-dev/berth/internal/desired"
)

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
		"its own error": apierrors.NewInternalError(errors.New("etcd")), "busy": apierrors.NewServiceUnavailable("wait"), "not reached": errors.New("connection refused"),
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
