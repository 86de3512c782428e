package join

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/join/drained"
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
		Host: m, Wanted: true, Timeout: time.Minute, Say: func(string) {},
		Fits:     func(context.Context) error { return nil },
		NodeName: func(string) (string, error) { return "n1", nil },
		Cluster:  func(string) (DrainCluster, error) { return yes, nil },
	}, yes
}

// TestDrainByTheDocumentsKubeconfig: a document may have kubelet keep its credential
// elsewhere; the node is drained as that.
func TestDrainByTheDocumentsKubeconfig(t *testing.T) {
	d, c := newDrain(t)
	c.m.Put(kubelet.FlagsFile, "KUBELET_FLAGS=--kubeconfig=/etc/k\n", 0o644)
	d.NodeName = func(p string) (string, error) {
		if p != "/etc/k" {
			return "", fs.ErrNotExist
		}
		return "n1", nil
	}
	if err := d.Drain(t.Context(), upgrade); err != nil || !slices.Equal(c.log, []string{cordon, "evict web"}) {
		t.Errorf("asked %q, %v", c.log, err)
	}
}

// never is no path.
func never(string) bool { return false }

// upgrade is a run that starts another kubelet.
var upgrade = converge.Disturbance{Units: []string{"kubelet.service"}, Changes: func(p string) bool { return p == binaries.Kubelet }, Repairs: never}

const cordon, uncordon = `patch n1 {"spec":{"unschedulable":true}}`, `patch n1 {"spec":{"unschedulable":false}}`

// TestDrainForUpgrade: pods of others go before another kubelet starts, and the node takes
// pods again afterwards, once.
func TestDrainForUpgrade(t *testing.T) {
	d, c := newDrain(t)
	for _, err := range []error{d.Drain(t.Context(), upgrade), d.Restore(t.Context(), converge.Stands), d.Restore(t.Context(), converge.Stands)} {
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
		"configured anew": {func(*Drain) {}, converge.Disturbance{Units: upgrade.Units, Changes: never, Repairs: never}, nil},
		"kubelet runs on": {func(*Drain) {}, converge.Disturbance{Changes: upgrade.Changes, Repairs: never}, nil},
		"comes back as it was": {func(d *Drain) { d.Fits = func(context.Context) error { return refused } },
			converge.Disturbance{Units: upgrade.Units, Changes: upgrade.Changes, Repairs: upgrade.Changes}, nil},
		"not asked for": {func(d *Drain) { d.Wanted = false }, upgrade, nil},
		"no node yet":   {func(d *Drain) { d.NodeName = func(string) (string, error) { return "", nil } }, upgrade, nil},
		"no kubeconfig": {func(d *Drain) { d.NodeName = func(string) (string, error) { return "", fs.ErrNotExist } }, upgrade, nil},
		"does not fit":  {func(d *Drain) { d.Fits = func(context.Context) error { return refused } }, upgrade, refused},
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
	c.budgets, d.Timeout = 1<<30, time.Second/2
	if err := d.Drain(t.Context(), upgrade); err == nil || !strings.Contains(err.Error(), "default/web") {
		t.Error(err)
	}
	if err := d.Restore(t.Context(), converge.Unchanged); err != nil || !slices.Equal(c.log, []string{cordon, uncordon}) {
		t.Errorf("%v, asked %q", err, c.log)
	}
	d, c = newDrain(t)
	c.pods = []core.Pod{pod("alone", "")}
	if err := d.Drain(t.Context(), upgrade); err == nil || !strings.Contains(err.Error(), "default/alone") || len(c.log) > 0 {
		t.Errorf("%v, asked %q", err, c.log)
	}
}

// TestDrainOfOthers: a node that somebody else has cordoned stays so.
func TestDrainOfOthers(t *testing.T) {
	d, c := newDrain(t)
	c.node.Spec.Unschedulable = true
	if err := errors.Join(d.Drain(t.Context(), upgrade), d.Restore(t.Context(), converge.Stands)); err != nil || !slices.Equal(c.log, []string{"evict web"}) {
		t.Errorf("%v, asked %q", err, c.log)
	}
}

// TestBrokenStaysCordoned: a node that does not stand as before takes no pods until a run
// has mended it. One that comes to nothing, or repairs something else, has not.
func TestBrokenStaysCordoned(t *testing.T) {
	d, c := newDrain(t)
	var said []string
	d.Say = func(line string) { said = append(said, line) }
	if err := errors.Join(d.Drain(t.Context(), upgrade), d.Restore(t.Context(), converge.Broken)); err != nil || slices.Contains(c.log, uncordon) {
		t.Errorf("%v, asked %q", err, c.log)
	}
	if err := d.Restore(t.Context(), converge.Unchanged); err != nil || slices.Contains(c.log, uncordon) {
		t.Errorf("a run that came to nothing: %v, asked %q", err, c.log)
	}
	if n := len(said); n == 0 || !strings.Contains(said[n-1], "node n1 stays cordoned") {
		t.Errorf("said %q", said)
	}
	if err := d.Restore(t.Context(), converge.Stands); err != nil || !slices.Contains(c.log, uncordon) {
		t.Errorf("mended: %v, asked %q", err, c.log)
	}
	if n, err := drained.Load(d.Host); n != nil || err != nil {
		t.Errorf("still noted: %v, %v", n, err)
	}
}

// TestNodeOfAnotherName: what this machine was under another name, or in another cluster,
// it may not change any more, and does not try for ever.
func TestNodeOfAnotherName(t *testing.T) {
	for name, edit := range map[string]func(*Drain, *drainable){
		"another name": func(d *Drain, _ *drainable) { d.NodeName = func(string) (string, error) { return "n2", nil } },
		"no node":      func(d *Drain, _ *drainable) { d.NodeName = func(string) (string, error) { return "", fs.ErrNotExist } },
		"another Node": func(_ *Drain, c *drainable) { c.node.UID = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			d, c := newDrain(t)
			c.node.UID = "u"
			if err := d.Drain(t.Context(), upgrade); err != nil {
				t.Fatal(err)
			}
			c.refusals[uncordon] = apierrors.NewForbidden(core.Resource("nodes"), "n1", errors.New("not yours"))
			edit(d, c)
			if err := d.Restore(t.Context(), converge.Stands); err != nil || !slices.Equal(c.log, []string{cordon, "evict web"}) {
				t.Errorf("%v, asked %q", err, c.log)
			}
			if n, err := drained.Load(d.Host); n != nil || err != nil {
				t.Errorf("still noted: %v, %v", n, err)
			}
		})
	}
}

// TestDrainWithAnotherKubeconfig: where a cluster manager has kubelet keep its credential
// elsewhere, that is used.
func TestDrainWithAnotherKubeconfig(t *testing.T) {
	d, c := newDrain(t)
	const theirs = "/var/lib/kubelet/kubeconfig-real"
	d.NodeName = func(p string) (string, error) {
		if p != theirs {
			return "", &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
		}
		return "n1", nil
	}
	d.Cluster = func(p string) (DrainCluster, error) {
		if p != theirs {
			t.Errorf("asked with %s", p)
		}
		return c, nil
	}
	if err := errors.Join(d.Drain(t.Context(), upgrade), d.Restore(t.Context(), converge.Stands)); err != nil || !slices.Equal(c.log, []string{cordon, "evict web", uncordon}) {
		t.Errorf("%v, asked %q", err, c.log)
	}
}

// TestDrainAsksAgain: an API server that fails to answer is asked again until the time is
// over; one that says no is not.
func TestDrainAsksAgain(t *testing.T) {
	forbidden := apierrors.NewForbidden(core.Resource("pods"), "", errors.New("no"))
	for name, tc := range map[string]struct {
		fails       int
		err         error
		gone, again bool
	}{
		"it comes back": {2, errors.New("connection refused"), true, true},
		"it does not":   {1 << 30, errors.New("connection refused"), false, true},
		"it says no":    {1 << 30, forbidden, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, c := newDrain(t)
			if !tc.gone {
				d.Timeout = time.Second / 2
			}
			f := &flaky{drainable: c, fails: tc.fails, err: tc.err}
			d.Cluster = func(string) (DrainCluster, error) { return f, nil }
			err := d.Drain(t.Context(), upgrade)
			if tc.gone {
				if err != nil || !slices.Equal(c.log, []string{cordon, "evict web"}) {
					t.Errorf("%v, asked %q", err, c.log)
				}
				return
			}
			if !errors.Is(err, tc.err) || !tc.again && f.asked != 2 || tc.again && f.asked < 3 {
				t.Errorf("%v, asked %d times", err, f.asked)
			}
		})
	}
}

// flaky answers the first question for pods, and then fails a number of times.
type flaky struct {
	*drainable
	asked, fails int
	err          error
}

func (f *flaky) ListPods(ctx context.Context, node string) ([]core.Pod, error) {
	if f.asked++; f.asked > 1 && f.asked <= f.fails+1 {
		return nil, f.err
	}
	return f.drainable.ListPods(ctx, node)
}

// TestDrainAfterARestart: a machine that took a change back when it started, when no cluster
// could be asked, has its node take pods again once kubelet runs. A change that breaks it
// meanwhile ends that.
func TestDrainAfterARestart(t *testing.T) {
	armed := func(d *Drain) bool {
		u, err := d.Host.Unit(t.Context(), drained.Timer)
		return err == nil && u.ActiveState == "active"
	}
	d, c := newDrain(t)
	d.Program = "/usr/local/bin/berth"
	if err := errors.Join(d.Restore(t.Context(), converge.Returned), d.Drain(t.Context(), upgrade)); err != nil || armed(d) {
		t.Fatal("nothing was drained:", err)
	}
	if err := d.Restore(t.Context(), converge.Returned); err != nil || !armed(d) || slices.Contains(c.log, uncordon) {
		t.Errorf("at boot: %v, asked %q", err, c.log)
	}
	if err := d.Restore(t.Context(), converge.Broken); err != nil || armed(d) || slices.Contains(c.log, uncordon) {
		t.Errorf("broken: %v, asked %q", err, c.log)
	}
	if err := errors.Join(d.Restore(t.Context(), converge.Returned), d.Restore(t.Context(), converge.Stands)); err != nil || armed(d) || !slices.Contains(c.log, uncordon) {
		t.Errorf("kubelet runs: %v, asked %q", err, c.log)
	}
	if n, err := drained.Load(d.Host); n != nil || err != nil {
		t.Errorf("still noted: %v, %v", n, err)
	}
}

// TestDamagedNote: nobody knows which node was cordoned, which is said once.
func TestDamagedNote(t *testing.T) {
	d, c := newDrain(t)
	c.m.Put("/var/lib/berth/drained.json", "{", 0o600)
	var said []string
	d.Say = func(line string) { said = append(said, line) }
	if err := errors.Join(d.Restore(t.Context(), converge.Unchanged), d.Restore(t.Context(), converge.Unchanged)); err != nil || len(c.log) > 0 {
		t.Errorf("%v, asked %q", err, c.log)
	}
	if len(said) != 1 || !strings.Contains(said[0], "drained.json is damaged") || !strings.Contains(said[0], "uncordon") {
		t.Errorf("said %q", said)
	}
}
