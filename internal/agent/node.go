package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/apiserver"
)

var (
	errNoServer = errors.New("no API server has been reached yet")
	errNoNode   = errors.New("the Node does not exist yet")
)

// node is the machine's own Node, and the way to its API server. It implements
// reconcile.Node.
type node struct {
	name   string
	latest apiserver.Latest[core.Node]
	client atomic.Pointer[apiserver.Client]
}

// Get is the Node as it was seen last.
func (n *node) Get() *core.Node {
	seen, _ := n.latest.Get()
	return seen
}

// reach is a client to write with, where there is a Node.
func (n *node) reach() (*apiserver.Client, error) {
	c, err := n.server()
	if err == nil && n.Get() == nil {
		err = errNoNode
	}
	return c, err
}

func (n *node) server() (*apiserver.Client, error) {
	c := n.client.Load()
	if c == nil {
		return nil, errNoServer
	}
	return c, nil
}

// Patch merges labels and annotations.
func (n *node) Patch(ctx context.Context, labels, annotations map[string]string) error {
	c, err := n.reach()
	if err != nil {
		return err
	}
	changes := map[string]any{} // null would take away all that there are
	if len(labels) > 0 {
		changes["labels"] = labels
	}
	if len(annotations) > 0 {
		changes["annotations"] = annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": changes})
	if err != nil {
		return fmt.Errorf("print patch: %w", err)
	}
	_, err = c.PatchNode(ctx, n.name, patch)
	return err
}

// Condition sets a condition. What has not changed keeps its time of transition.
func (n *node) Condition(ctx context.Context, c core.NodeCondition) error {
	client, err := n.reach()
	if err != nil {
		return err
	}
	for _, was := range n.Get().Status.Conditions {
		if was.Type == c.Type && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []core.NodeCondition{c}}})
	if err != nil {
		return fmt.Errorf("print patch: %w", err)
	}
	_, err = client.PatchNodeStatus(ctx, n.name, patch)
	return err
}

// The calls that controllers need; they fail while no API server was reached.

// CreateEvent implements event.Calls.
func (n *node) CreateEvent(ctx context.Context, e *core.Event) (*core.Event, error) {
	c, err := n.server()
	if err != nil {
		return nil, err
	}
	return c.CreateEvent(ctx, e)
}

// PatchEvent implements event.Calls.
func (n *node) PatchEvent(ctx context.Context, namespace, name string, patch []byte) error {
	c, err := n.server()
	if err != nil {
		return err
	}
	return c.PatchEvent(ctx, namespace, name, patch)
}

// GetLease implements rollout.Leases.
func (n *node) GetLease(ctx context.Context, namespace, name string) (*coordination.Lease, error) {
	c, err := n.server()
	if err != nil {
		return nil, err
	}
	return c.GetLease(ctx, namespace, name)
}

// CreateLease implements rollout.Leases.
func (n *node) CreateLease(ctx context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	c, err := n.server()
	if err != nil {
		return nil, err
	}
	return c.CreateLease(ctx, l)
}

// UpdateLease implements rollout.Leases.
func (n *node) UpdateLease(ctx context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	c, err := n.server()
	if err != nil {
		return nil, err
	}
	return c.UpdateLease(ctx, l)
}

// followLease tells of changes of a Lease until ctx ends.
func (n *node) followLease(ctx context.Context, name string, changed func()) {
	c, err := n.server()
	if err != nil {
		return
	}
	c.FollowLease(ctx, Namespace, name, apiserver.Follower[coordination.Lease]{
		See:  func(*coordination.Lease) { changed() },
		Fail: func(error) {}, // whoever waits looks now and then, and says what keeps it
	})
}
