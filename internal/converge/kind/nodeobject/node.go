// Package nodeobject is the kind of the cluster's Node object of this machine: labels are
// patched with the node's own credential, taints are reported, and a Node that was
// deleted comes back by a restart of kubelet.
package nodeobject

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// Kind is the kind of Node objects. In the ledger "node:NAME" stands for the Node
// and "node:NAME/KEY" for each label of it.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "node" }

// Pass implements kind.Kind: units are observed later, and kubelet's may have to
// start anew.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(_ *kind.View, r desired.Resource) []string {
	n := r.(*desired.NodeObject)
	out := []string{string(n.ID())}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		out = append(out, labelID(n.Name, key))
	}
	return out
}

func labelID(node, key string) string { return string(desired.NodeObjectID(node)) + "/" + key }

// Observe implements kind.Kind. Of a machine that has not joined the Node is looked at
// when it has: kubelet creates one with what its flags say, and leaves one that is there.
func (Kind) Observe(ctx context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	n := r.(*desired.NodeObject)
	if v.Offline {
		return nil
	}
	o, err := kind.LookAtNode(ctx, v, n.Kubeconfig, n.Name)
	if err != nil {
		return err
	}
	if o.Sight == kind.NodeUnknown {
		t.Remarks = append(t.Remarks, notCompared(n, o))
		return nil
	}
	if err := claimLabels(v, t, n, o); err != nil {
		return err
	}
	if err := compareTaints(v, t, n, o); err != nil {
		return err
	}
	switch o.Sight {
	case kind.NodeUnjoined:
		correctLater(v, t, n, o)
	case kind.NodePresent:
		correct(t, n, o)
	case kind.NodeAbsent:
		return comeBack(ctx, v, t, n, o)
	}
	return nil
}

func notCompared(n *desired.NodeObject, o *kind.OwnNode) string {
	return fmt.Sprintf("Node %s was not compared: %v", n.Name, o.Err)
}

// comesBack bounds the wait for the Node of a kubelet that was started anew.
const comesBack = 30 * time.Second

// comeBack plans that kubelet, which registers once after each start, starts anew.
func comeBack(ctx context.Context, v *kind.View, t *kind.Task, n *desired.NodeObject, o *kind.OwnNode) error {
	_, hadTime, running, err := kind.StartOf(ctx, v.Host, n.Unit)
	if err != nil || !running {
		return err
	}
	if !hadTime {
		t.Remarks = append(t.Remarks, fmt.Sprintf("there is no Node %s yet: %s, which has just started, is to create it", n.Name, n.Unit))
		return nil
	}
	t.Demand = kind.Demand{Unit: desired.UnitID(n.Unit), Reason: "Node " + n.Name + " was deleted"}
	t.Act(kind.VerbCreate, "the Node object was deleted; kubelet creates it when it starts", kind.DisruptNone)
	t.Remote = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, comesBack, fmt.Errorf("%s was restarted and has not created it within %s", n.Unit, comesBack))
		defer cancel()
		if _, err := o.Session.Await(ctx); err != nil {
			return &Error{Node: n.Name, What: "wait for it", Remedy: "See journalctl -u " + n.Unit + ".", Err: err}
		}
		return nil
	}
	return nil
}

// Error is a Node that could not be made as it is wanted.
type Error struct {
	Node string
	// What was attempted, and Remedy what to do where the cause does not say it.
	What, Remedy string
	Err          error
}

// Error names the Node.
func (e *Error) Error() string { return fmt.Sprintf("Node %s: %s: %v", e.Node, e.What, e.Err) }

// Hint says what to do.
func (e *Error) Hint() string { return e.Remedy }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
