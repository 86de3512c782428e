package apiserver

import (
	"context"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FollowRequests follows all certificate signing requests for a signer until ctx
// ends. See is told of each, at first and at each change; not of their end.
func (c *Client) FollowRequests(ctx context.Context, signer string, f Follower[certificates.CertificateSigningRequest]) {
	all := &selected{c.requests, requestsResource, "", "spec.signerName=" + signer, func() runtime.Object { return &certificates.CertificateSigningRequestList{} }}
	follow(ctx, c, all, toldOfEach[certificates.CertificateSigningRequest]{f.See}, f)
}

// ApproveRequest puts a request's conditions. One that has changed since it was
// read is a conflict to apimachinery's errors package.
func (c *Client) ApproveRequest(ctx context.Context, r *certificates.CertificateSigningRequest) error {
	return c.short(ctx, func(ctx context.Context) error {
		return c.requests.Put().Resource(requestsResource).Name(r.Name).SubResource("approval").Body(r).MaxRetries(0).Do(ctx).Error()
	})
}

// toldOfEach is the Reflector's store for many objects: it keeps none.
type toldOfEach[T any] struct{ see func(*T) }

// Add implements cache.ReflectorStore.
func (t toldOfEach[T]) Add(object any) error { return t.Update(object) }

// Update implements cache.ReflectorStore.
func (t toldOfEach[T]) Update(object any) error {
	if v, ok := object.(*T); ok {
		t.see(v)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (toldOfEach[T]) Delete(any) error { return nil }

// Replace implements cache.ReflectorStore.
func (t toldOfEach[T]) Replace(list []any, _ string) error {
	for _, object := range list {
		if err := t.Update(object); err != nil {
			return err
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (toldOfEach[T]) Resync() error { return nil }
