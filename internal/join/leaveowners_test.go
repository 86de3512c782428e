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
