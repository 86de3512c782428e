package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// Nodes sees and labels Node objects, each with the credential of its own node.
type Nodes struct {
	Host host.FS
	// Ahead may have asked already; may be nil.
	Ahead *Ahead
	// Connections may have a connection with the node's certificate; may be nil.
	Connections *Connections
}

// Open reads a kubeconfig and what it refers to.
func (n Nodes) Open(path, node string) (converge.NodeSession, error) {
	if s := n.Ahead.take(path, node); s != nil {
		return s, nil
	}
	s, err := openNode(n.Host, path, node, n.Connections)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openNode(h host.FS, path, node string, over *Connections) (*nodeSession, error) {
	k, err := kubeconfig.Read(h, path)
	if err != nil {
		return nil, err
	}
	access := accessOf(k)
	access.Connections = over
	c, err := NewClient(access)
	if err != nil {
		return nil, err
	}
	return &nodeSession{client: c, name: node}, nil
}

// nodeSession are the calls of one node for its own Node.
type nodeSession struct {
	client *Client
	name   string
}

// Get implements converge.NodeSession. Errors are *Error.
func (s *nodeSession) Get(ctx context.Context) (*converge.NodeState, error) {
	n, err := s.client.GetNode(ctx, s.name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return stateOf(n), nil
}

// Label implements converge.NodeSession. A Node of another uid is refused by the
// API server as a conflict.
func (s *nodeSession) Label(ctx context.Context, uid string, labels map[string]*string) (*converge.NodeState, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "labels": labels}})
	if err != nil {
		return nil, fmt.Errorf("write patch: %w", err)
	}
	n, err := s.client.PatchNode(ctx, s.name, patch)
	if err != nil {
		return nil, err
	}
	return stateOf(n), nil
}

// Await implements converge.NodeSession. The error is the last one that kept it
// from seeing the Node, else the context's cause.
func (s *nodeSession) Await(ctx context.Context) (*converge.NodeState, error) {
	next := Intervals(20*time.Millisecond, time.Second)
	for {
		n, err := s.first(ctx)
		switch {
		case n != nil:
			return stateOf(n), nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !Pause(ctx, next.NextBackOff()):
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// first waits for the first Node that a watch shows.
func (s *nodeSession) first(ctx context.Context) (*core.Node, error) {
	events, err := s.client.WatchNode(ctx, s.name)
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case event, open := <-events.ResultChan():
			if !open {
				return nil, errWatchEnded
			}
			if n, ok := event.Object.(*core.Node); ok && event.Type != watch.Deleted {
				return n, nil
			}
			if event.Type == watch.Error {
				return nil, apierrors.FromObject(event.Object)
			}
		}
	}
}

func stateOf(n *core.Node) *converge.NodeState {
	s := &converge.NodeState{UID: string(n.UID), Labels: n.Labels, PodCIDRs: n.Spec.PodCIDRs}
	for _, t := range n.Spec.Taints {
		s.Taints = append(s.Taints, desired.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return s
}
