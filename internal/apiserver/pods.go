package apiserver

import (
	"context"
	"encoding/json"
	"fmt"

	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const podsResource = "pods"

// ListPods reads the pods that are bound to a node. A node's own identity may ask
// for no others.
func (c *Client) ListPods(ctx context.Context, node string) ([]core.Pod, error) {
	out := &core.PodList{}
	err := c.short(ctx, func(ctx context.Context) error {
		opts := &meta.ListOptions{FieldSelector: "spec.nodeName=" + node}
		return c.core.Get().Resource(podsResource).VersionedParams(opts, c.params).MaxRetries(0).Do(ctx).Into(out)
	})
	return out.Items, err
}

// Evict asks for a pod's end, as far as disruption budgets let it go: else the error
// is apimachinery's TooManyRequests. A pod that has gone, or in whose place another
// one of its name stands, is evicted.
func (c *Client) Evict(ctx context.Context, p *core.Pod) error {
	e := policy.Eviction{
		TypeMeta:      meta.TypeMeta{APIVersion: policy.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    meta.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		DeleteOptions: &meta.DeleteOptions{Preconditions: meta.NewUIDPreconditions(string(p.UID))},
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write eviction: %w", err)
	}
	err = c.short(ctx, func(ctx context.Context) error {
		return c.core.Post().Namespace(p.Namespace).Resource(podsResource).Name(p.Name).SubResource("eviction").
			SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).MaxRetries(0).Do(ctx).Error()
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// DeleteNode takes away the Node that has this uid; one that does not exist is no error,
// one of another uid is apimachinery's Conflict. A node's own identity may not.
func (c *Client) DeleteNode(ctx context.Context, name, uid string) error {
	body, err := json.Marshal(meta.DeleteOptions{
		TypeMeta:      meta.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: meta.NewUIDPreconditions(uid),
	})
	if err != nil {
		return fmt.Errorf("write the options: %w", err)
	}
	err = c.short(ctx, func(ctx context.Context) error {
		return c.core.Delete().Resource(nodesResource).Name(name).
			SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).MaxRetries(0).Do(ctx).Error()
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
