package apiserver

import (
	"context"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	secretsResource = "secrets"
	leasesResource  = "leases"
	eventsResource  = "events"
)

// GetSecret reads a Secret.
func (c *Client) GetSecret(ctx context.Context, namespace, name string) (*core.Secret, error) {
	out := &core.Secret{}
	return out, c.short(ctx, func(ctx context.Context) error {
		return c.core.Get().Namespace(namespace).Resource(secretsResource).Name(name).MaxRetries(0).Do(ctx).Into(out)
	})
}

// GetLease reads a Lease.
func (c *Client) GetLease(ctx context.Context, namespace, name string) (*coordination.Lease, error) {
	out := &coordination.Lease{}
	return out, c.short(ctx, func(ctx context.Context) error {
		return c.leases.Get().Namespace(namespace).Resource(leasesResource).Name(name).MaxRetries(0).Do(ctx).Into(out)
	})
}

// CreateLease posts a Lease and returns it with its version.
func (c *Client) CreateLease(ctx context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	out := &coordination.Lease{}
	return out, c.short(ctx, func(ctx context.Context) error {
		return c.leases.Post().Namespace(l.Namespace).Resource(leasesResource).Body(l).MaxRetries(0).Do(ctx).Into(out)
	})
}

// UpdateLease puts a Lease. One that has changed since it was read is a conflict
// to apimachinery's errors package.
func (c *Client) UpdateLease(ctx context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	out := &coordination.Lease{}
	return out, c.short(ctx, func(ctx context.Context) error {
		return c.leases.Put().Namespace(l.Namespace).Resource(leasesResource).Name(l.Name).Body(l).MaxRetries(0).Do(ctx).Into(out)
	})
}

// PatchNodeStatus merges a strategic patch into a Node's status: a condition
// replaces the one of its type, and no other.
func (c *Client) PatchNodeStatus(ctx context.Context, name string, patch []byte) (*core.Node, error) {
	out := &core.Node{}
	return out, c.short(ctx, func(ctx context.Context) error {
		return c.core.Patch(types.StrategicMergePatchType).Resource(nodesResource).Name(name).SubResource("status").
			Body(patch).MaxRetries(0).Do(ctx).Into(out)
	})
}

// CreateEvent posts an event.
func (c *Client) CreateEvent(ctx context.Context, e *core.Event) (*core.Event, error) {
	out := &core.Event{}
	return out, c.short(ctx, func(ctx context.Context) error {
		return c.core.Post().Namespace(e.Namespace).Resource(eventsResource).Body(e).MaxRetries(0).Do(ctx).Into(out)
	})
}

// PatchEvent merges a patch (RFC 7386) into an event.
func (c *Client) PatchEvent(ctx context.Context, namespace, name string, patch []byte) error {
	return c.short(ctx, func(ctx context.Context) error {
		return c.core.Patch(types.MergePatchType).Namespace(namespace).Resource(eventsResource).Name(name).Body(patch).MaxRetries(0).Do(ctx).Error()
	})
}
