package join

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host/memory"
)

// drainable is a cluster whose pods go when they are evicted.
type drainable struct {
	*world
	node core.Node
}

func (d *drainable) GetNode(context.Context, string) (*core.Node, error) { return &d.node, nil }

func newDrain(t *testing.T) (*Drain, *drainable) {
	m := memory.New()
	m.PutDir("/var/lib/berth") // the engine has begun by then
	yes := &drainable{world: &world{t: t, m: m, h: m, refusals: map[string]error{}}}
	yes.node.Name, yes.pods = "n1", []core.Pod{pod("web", "sets"), pod("proxy", "proxies")}
	yes.pods[0].OwnerReferences[0].Kind = "ReplicaSet"
	return &Drain{
		Host: m, Wanted: true, Timeout: time.Second, Say: func(string) {},
		Fits:     func(context.Context) error { return nil },
		NodeName: func(string) (string, error) { return "n1", nil },
		Cluster:  func(string) (DrainCluster, error) { return yes, nil },
	}, yes
}

// upgrade is a run that starts another kubelet.
var upgrade = converge.Disturbance{Units: []string{"kubelet.service"}, Changes: func(p string) bool { return p == binaries.Kubelet }}

const cordon, uncordon = `patch n1 {"spec":{"unschedulable":true}}`, `patch n1 {"spec":{"unschedulable":false}}`

// TestDrainForUpgrade: pods of others go before another kubelet starts, and the node takes
// pods again afterwards, once.
func TestDrainForUpgrade(t *testing.T) {
	d, c := newDrain(t)
	for _, err := range []error{d.Drain(t.Context(), upgrade), d.Restore(t.Context(), false), d.Restore(t.Context(), false)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{cordon, "evict web", uncordon}; !slices.Equal(c.log, want) {
		t.Errorf("asked %q, want %q", c.log, want)
	}
}

// TestNoDrain: what no pod notices, what nobody asked for, and a kubelet that does not fit
// leave the node alone.
func TestNoDrain(t *testing.T) {
	refused := errors.New("too new")
	for name, tc := range map[string]struct {
		edit func(*Drain)
		by   converge.Disturbance
		want error
	}{
		"configured anew": {func(*Drain) {}, converge.Disturbance{Units: upgrade.Units, Changes: func(string) bool { return false }}, nil},
		"kubelet runs on": {func(*Drain) {}, converge.Disturbance{Changes: upgrade.Changes}, nil},
		"not asked for":   {func(d *Drain) { d.Wanted = false }, upgrade, nil},
		"no node yet":     {func(d *Drain) { d.NodeName = func(string) (string, error) { return "", nil } }, upgrade, nil},
		"does not fit":    {func(d *Drain) { d.Fits = func(context.Context) error { return refused } }, upgrade, refused},
	} {
		t.Run(name, func(t *testing.T) {
			d, c := newDrain(t)
			tc.edit(d)
			if err := d.Drain(t.Context(), tc.by); !errors.Is(err, tc.want) || len(c.log) > 0 {
				t.Errorf("%v, asked %q", err, c.log)
			}
		})
	}
}

// TestDrainFails: a pod that stays, or that nothing would start again, keeps the upgrade
// from being made; the node takes pods again.
func TestDrainFails(t *testing.T) {
	d, c := newDrain(t)
	c.budgets, d.Timeout = 1<<30, 20*time.Millisecond
	if err := d.Drain(t.Context(), upgrade); err == nil || !strings.Contains(err.Error(), "default/web") {
		t.Error(err)
	}
	if err := d.Restore(t.Context(), false); err != nil || !slices.Equal(c.log, []string{cordon, uncordon}) {
		t.Errorf("%v, asked %q", err, c.log)
	}
	d, c = newDrain(t)
	c.pods = []core.Pod{pod("alone", "")}
	if err := d.Drain(t.Context(), upgrade); err == nil || !strings.Contains(err.Error(), "default/alone") || len(c.log) > 0 {
		t.Errorf("%v, asked %q", err, c.log)
	}
}

// TestDrainOfOthers: a node that somebody else has cordoned stays so, and so does one that
// does not stand as before, until a run has mended it.
func TestDrainOfOthers(t *testing.T) {
	d, c := newDrain(t)
	c.node.Spec.Unschedulable = true
	if err := errors.Join(d.Drain(t.Context(), upgrade), d.Restore(t.Context(), false)); err != nil || !slices.Equal(c.log, []string{"evict web"}) {
		t.Errorf("%v, asked %q", err, c.log)
	}
	d, c = newDrain(t)
	if err := errors.Join(d.Drain(t.Context(), upgrade), d.Restore(t.Context(), true)); err != nil || slices.Contains(c.log, uncordon) {
		t.Errorf("%v, asked %q", err, c.log)
	}
	if err := d.Restore(t.Context(), false); err != nil || !slices.Contains(c.log, uncordon) {
		t.Errorf("%v, asked %q", err, c.log)
	}
}
