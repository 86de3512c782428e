// Package heartbeat renews the Lease by which a cluster sees that the agent of a
// node runs.
package heartbeat

import (
	"context"
	"log/slog"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/apiserver"
)

const namespace = "kube-system"

// Calls are the API server's.
type Calls interface {
	GetLease(ctx context.Context, namespace, name string) (*coordination.Lease, error)
	CreateLease(context.Context, *coordination.Lease) (*coordination.Lease, error)
	UpdateLease(context.Context, *coordination.Lease) (*coordination.Lease, error)
}

// Heartbeat is the Lease of one node's agent. Readers take the agent for stopped
// when Duration has passed since the last renewal.
type Heartbeat struct {
	Calls Calls
	// Node is the own Node: it owns the Lease.
	Node *apiserver.Latest[core.Node]
	// Renew is between two renewals, Duration what readers go by; cut to seconds.
	Renew, Duration time.Duration

	last *coordination.Lease
}

// Name of a node's Lease.
func Name(node string) string { return "gardener-node-agent-" + node }

// Run renews the Lease until ctx ends, from when there is a Node. What goes wrong
// is tried again well before Duration has passed.
func (h *Heartbeat) Run(ctx context.Context) error {
	for node := range h.Node.Each(ctx) {
		if node != nil {
			h.beat(ctx)
			return nil
		}
	}
	return nil
}

func (h *Heartbeat) beat(ctx context.Context) {
	next := apiserver.Intervals(h.Renew/20, h.Renew/2)
	for well := true; ; {
		err := h.renew(ctx)
		pause := h.Renew
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !well:
			slog.Info("lease is renewed again")
		case err != nil && well:
			slog.Warn("renew lease", "error", err)
		}
		if well = err == nil; well {
			next.Reset()
		} else {
			pause = next.NextBackOff()
		}
		if !apiserver.Pause(ctx, pause) {
			return
		}
	}
}

// renew writes the Lease over the version that was seen last. One that somebody
// else changed or removed is looked at again, once.
func (h *Heartbeat) renew(ctx context.Context) error {
	node, _ := h.Node.Get()
	if node == nil {
		return nil // a Lease without its owner would be collected
	}
	err := h.put(ctx, node)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		h.last = nil
		err = h.put(ctx, node)
	}
	return err
}

func (h *Heartbeat) put(ctx context.Context, node *core.Node) error {
	write := h.Calls.UpdateLease
	if h.last == nil {
		found, err := h.Calls.GetLease(ctx, namespace, Name(node.Name))
		switch {
		case apierrors.IsNotFound(err):
			write, found = h.Calls.CreateLease, nil
		case err != nil:
			return err
		}
		h.last = found
	}
	l, err := write(ctx, h.lease(node, h.last))
	if err != nil {
		return err
	}
	h.last = l
	return nil
}

func (h *Heartbeat) lease(node *core.Node, old *coordination.Lease) *coordination.Lease {
	now, yes := meta.NowMicro(), true
	name, seconds := Name(node.Name), int32(h.Duration/time.Second)
	l := &coordination.Lease{ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: name}}
	l.Spec.AcquireTime = &now
	if old != nil {
		l = old.DeepCopy()
	}
	l.OwnerReferences = []meta.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &yes}}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &name, &seconds, &now
	return l
}
