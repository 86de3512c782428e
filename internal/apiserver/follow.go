package apiserver

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Follower hears of one object. Both functions are called in turn by one
// goroutine and must return soon; nothing is kept for them.
type Follower[T any] struct {
	// See is told how the object is: at first, at each change, and once more when a
	// server that was away is back. nil: there is none.
	See func(*T)
	// Fail is told why the object can't be seen; it goes on being asked for, with
	// pauses that grow to some ten seconds.
	Fail func(error)
}

// FollowNode follows a Node until ctx ends.
func (c *Client) FollowNode(ctx context.Context, name string, f Follower[core.Node]) {
	follow(ctx, c, one(c.core, nodesResource, "", name, func() runtime.Object { return &core.NodeList{} }), told[core.Node](f.See), f)
}

// FollowSecret follows a Secret until ctx ends. It asks for that one only, so
// that a right to list Secrets by this name is enough.
func (c *Client) FollowSecret(ctx context.Context, namespace, name string, f Follower[core.Secret]) {
	follow(ctx, c, one(c.core, secretsResource, namespace, name, func() runtime.Object { return &core.SecretList{} }), told[core.Secret](f.See), f)
}

// FollowLease follows a Lease until ctx ends.
func (c *Client) FollowLease(ctx context.Context, namespace, name string, f Follower[coordination.Lease]) {
	follow(ctx, c, one(c.leases, leasesResource, namespace, name, func() runtime.Object { return &coordination.LeaseList{} }), told[coordination.Lease](f.See), f)
}

// selected are objects by a field, and the list that they come in.
type selected struct {
	from                       *rest.RESTClient
	resource, namespace, field string
	list                       func() runtime.Object
}

// one is the object of a name.
func one(from *rest.RESTClient, resource, namespace, name string, list func() runtime.Object) *selected {
	return &selected{from, resource, namespace, "metadata.name=" + name, list}
}

func (n *selected) get(c *Client, opts meta.ListOptions) *rest.Request {
	opts.FieldSelector = n.field
	return n.from.Get().NamespaceIfScoped(n.namespace, n.namespace != "").Resource(n.resource).VersionedParams(&opts, c.params).MaxRetries(0)
}

// follow stands on client-go's Reflector: it asks again where a watch ended, from
// the version that was seen last, and anew where that version has expired.
func follow[T any](ctx context.Context, c *Client, n *selected, store cache.ReflectorStore, f Follower[T]) {
	fail := func(err error) {
		if err != nil && ctx.Err() == nil {
			f.Fail(err)
		}
	}
	asked := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts meta.ListOptions) (runtime.Object, error) {
			list := n.list()
			err := c.short(ctx, func(ctx context.Context) error { return n.get(c, opts).Do(ctx).Into(list) })
			fail(err)
			return list, opaque(err)
		},
		WatchFuncWithContext: func(ctx context.Context, opts meta.ListOptions) (watch.Interface, error) {
			opts.Watch = true
			w, err := c.stream(ctx, n.get(c, opts))
			if opts.SendInitialEvents == nil { // else it is listed next, and that tells
				fail(err)
			}
			return w, opaque(err)
		},
	}
	var object any = new(T)
	r := cache.NewReflectorWithOptions(asked, object, store, cache.ReflectorOptions{Name: n.field, Backoff: followPauses()})
	r.RunWithContext(logr.NewContext(ctx, logr.Discard()))
}

// stream opens a watch. The library returns an empty one where it ran into a
// timeout or a closed connection; here that is an error.
func (c *Client) stream(ctx context.Context, r *rest.Request) (watch.Interface, error) {
	var w watch.Interface
	err := c.call(ctx, func(ctx context.Context) (err error) {
		if w, err = r.Watch(ctx); err != nil {
			return err
		}
		if _, open := w.(*watch.StreamWatcher); !open {
			return errWatchEnded
		}
		return nil
	})
	return w, err
}

// opaque hides what an error was made of, unless the Reflector has to know: on a
// refused connection it would wait for its pause even where the context ends.
func opaque(err error) error {
	if err == nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, meta.CauseTypeResourceVersionTooLarge) {
		return err
	}
	return errors.New(err.Error())
}

// told is the Reflector's store: it keeps nothing.
type told[T any] func(*T)

// Add implements cache.ReflectorStore.
func (t told[T]) Add(object any) error { return t.Update(object) }

// Update implements cache.ReflectorStore.
func (t told[T]) Update(object any) error {
	if v, ok := object.(*T); ok {
		t(v)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (t told[T]) Delete(any) error { t(nil); return nil }

// Replace implements cache.ReflectorStore. The selector is for one name.
func (t told[T]) Replace(list []any, _ string) error {
	if len(list) == 0 {
		return t.Delete(nil)
	}
	return t.Update(list[0])
}

// Resync implements cache.ReflectorStore.
func (told[T]) Resync() error { return nil }

// followPauses lie between tries; each gets up to half of it more, so that the
// nodes of a cluster do not come back all at once.
func followPauses() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 10 * time.Second}
}
