package apiserver

import (
	"context"

	certificates "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

const (
	requestsResource = "certificatesigningrequests"
	nodesResource    = "nodes"
)

// CreateRequest posts a certificate signing request. Errors are *Error; the
// answer of the server is inside and found by apimachinery's errors package.
func (c *Client) CreateRequest(ctx context.Context, r *certificates.CertificateSigningRequest) (*certificates.CertificateSigningRequest, error) {
	out := &certificates.CertificateSigningRequest{}
	return out, c.short(ctx, func(ctx context.Context) error {
		return c.requests.Post().Resource(requestsResource).Body(r).MaxRetries(0).Do(ctx).Into(out)
	})
}

// GetRequest reads a certificate signing request.
func (c *Client) GetRequest(ctx context.Context, name string) (*certificates.CertificateSigningRequest, error) {
	out := &certificates.CertificateSigningRequest{}
	return out, c.short(ctx, func(ctx context.Context) error {
		return c.requests.Get().Resource(requestsResource).Name(name).MaxRetries(0).Do(ctx).Into(out)
	})
}

// ListRequests reads all certificate signing requests for a signer.
func (c *Client) ListRequests(ctx context.Context, signer string) ([]certificates.CertificateSigningRequest, error) {
	out := &certificates.CertificateSigningRequestList{}
	err := c.short(ctx, func(ctx context.Context) error {
		opts := &meta.ListOptions{FieldSelector: "spec.signerName=" + signer}
		return c.requests.Get().Resource(requestsResource).VersionedParams(opts, c.params).MaxRetries(0).Do(ctx).Into(out)
	})
	return out.Items, err
}

// WatchRequest follows a certificate signing request from a version on.
func (c *Client) WatchRequest(ctx context.Context, name, version string) (watch.Interface, error) {
	return c.watch(ctx, c.requests, requestsResource, name, version)
}

// WatchNode follows the Node of a name; the first event, if it exists, is the
// Node as it is.
func (c *Client) WatchNode(ctx context.Context, name string) (watch.Interface, error) {
	return c.watch(ctx, c.core, nodesResource, name, "")
}

// GetNode reads a Node.
func (c *Client) GetNode(ctx context.Context, name string) (*core.Node, error) {
	out := &core.Node{}
	return out, c.short(ctx, func(ctx context.Context) error {
		return c.core.Get().Resource(nodesResource).Name(name).MaxRetries(0).Do(ctx).Into(out)
	})
}

// PatchNode merges a patch (RFC 7386) into a Node and returns what came of it.
func (c *Client) PatchNode(ctx context.Context, name string, patch []byte) (*core.Node, error) {
	out := &core.Node{}
	return out, c.short(ctx, func(ctx context.Context) error {
		return c.core.Patch(types.MergePatchType).Resource(nodesResource).Name(name).Body(patch).MaxRetries(0).Do(ctx).Into(out)
	})
}

// CreateNode posts a Node.
func (c *Client) CreateNode(ctx context.Context, n *core.Node) error {
	return c.short(ctx, func(ctx context.Context) error {
		return c.core.Post().Resource(nodesResource).Body(n).MaxRetries(0).Do(ctx).Error()
	})
}

func (c *Client) watch(ctx context.Context, from *rest.RESTClient, resource, name, version string) (watch.Interface, error) {
	opts := &meta.ListOptions{Watch: true, FieldSelector: "metadata.name=" + name, ResourceVersion: version}
	var w watch.Interface
	err := c.call(ctx, func(ctx context.Context) (err error) {
		w, err = from.Get().Resource(resource).VersionedParams(opts, c.params).MaxRetries(0).Watch(ctx)
		return err
	})
	return w, err
}

// short is call for what a server answers at once.
func (c *Client) short(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*tryTimeout)
	defer cancel()
	return c.call(ctx, f)
}
