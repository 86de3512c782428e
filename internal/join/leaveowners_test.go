package join

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/report"
)

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

// TestTakeAgent: what its documents made a node is none without it, wherever a run was cut
// off; what another document did is one still.
func TestTakeAgent(t *testing.T) {
	take := func(w *world, edit ...func(*Options)) ([]string, error) {
		o := w.options()
		for _, f := range edit {
			f(&o)
		}
		o.Reset = func(ctx context.Context) ([]string, error) {
			for _, owner := range []desired.Owner{desired.OwnerOSC, desired.OwnerBerth} {
				if _, err := o.Apply(ctx, nodeless(t, owner)); err != nil {
					return nil, err
				}
			}
			return nil, w.call("reset the agent")
		}
		return TakeAgent(t.Context(), o, desired.OwnerOSC, desired.OwnerBerth)
	}
	made := func() *world {
		w := newWorld(t)
		w.join(desired.OwnerOSC)
		if err := w.m.Remove(report.SentinelPath); err != nil { // another kind of document's
			t.Fatal(err)
		}
		return w
	}
	t.Run("a node of its documents", func(t *testing.T) {
		w := made()
		if stayed, err := take(w); err != nil || len(stayed) > 0 {
			t.Errorf("%q, %v", stayed, err)
		}
		w.isAsBefore()
		if want := []string{"list", "end 1", "network ", "reset the agent"}; !slices.Equal(w.log, want) {
			t.Errorf("asked %q", w.log)
		}
	})
	t.Run("a node of another agent", func(t *testing.T) {
		w := newWorld(t)
		w.m.Put("/etc/systemd/system/kubelet.service", service("/opt/bin/kubelet"), 0o644)
		if err := w.m.StartUnit(t.Context(), "kubelet.service"); err != nil {
			t.Fatal(err)
		}
		w.join(desired.OwnerOSC)
		if _, err := take(w); err != nil {
			t.Error(err)
		}
		if !w.active("kubelet.service") || len(w.boxes) != 1 || !slices.Equal(w.log, []string{"reset the agent"}) {
			t.Errorf("asked %q", w.log)
		}
	})
	t.Run("a disk of kubelet's data", func(t *testing.T) {
		w := made()
		if stayed, err := take(w, func(o *Options) { o.Keep = []string{"/var/lib/kubelet"} }); err != nil || len(stayed) > 0 {
			t.Errorf("%q, %v", stayed, err)
		}
		if _, err := w.m.Lstat("/var/lib/kubelet/pods/u1/etc-hosts"); err != nil || len(w.boxes) > 0 {
			t.Errorf("%v, %v", err, w.boxes)
		}
	})
	t.Run("killed", func(t *testing.T) {
		for at := 1; ; at++ {
			w := made()
			injector := effect.Inject(w.m, effect.Plan{{At: at, Kind: effect.StopAfter}})
			w.h = injector
			_, _ = take(w)
			if injector.Hit() == nil {
				if at < 20 {
					t.Errorf("only %d effects", at)
				}
				break
			}
			w.h = w.m
			if stayed, err := take(w); err != nil || len(stayed) > 0 {
				t.Errorf("%q, %v", stayed, err)
			}
			if w.isAsBefore(); t.Failed() {
				t.Fatalf("killed at %s", injector.Hit())
			}
		}
	})
	t.Run("a node of another document", func(t *testing.T) {
		w := newWorld(t)
		w.join(desired.OwnerAKS)
		w.join(desired.OwnerOSC, &desired.File{Path: "/etc/more", Content: desired.Text("x"), Mode: 0o644, Life: desired.Managed})
		if stayed, err := take(w); err != nil || len(stayed) > 0 {
			t.Errorf("%q, %v", stayed, err)
		}
		if _, err := w.m.Lstat("/etc/more"); err == nil || !w.active("kubelet.service") || len(w.boxes) != 1 || !w.hasBridge {
			t.Errorf("%v, asked %q", err, w.log)
		}
	})
}

// nodeless is a state of an owner who wants nothing.
func nodeless(t *testing.T, owner desired.Owner) *desired.State {
	t.Helper()
	st := &desired.State{Owner: owner}
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	return st
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
