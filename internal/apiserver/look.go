package apiserver

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// lookTimeout bounds one look at what may be away.
const lookTimeout = 3 * time.Second

// Stands says how kubelet and its Node stand now. What can't be seen is false.
func (w NodeWatcher) Stands(ctx context.Context) (healthy, ready bool) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	healthy = askHealth(ctx, client, w.healthz()) == nil
	n, err := w.look(ctx)
	if err != nil {
		return healthy, false
	}
	boot, c := bootID(w.Host), readyCondition(n)
	return healthy, c != nil && c.Status == core.ConditionTrue && (boot == "" || n.Status.NodeInfo.BootID == boot)
}

// StandAgain waits until kubelet and its Node stand as they did, or ctx ends: what did
// not hold before is not waited for. An API server that is away tells nothing of the
// Node: that is a remark, and no error.
func (w NodeWatcher) StandAgain(ctx context.Context, healthy, ready bool) (remark string, err error) {
	milestone := MilestoneKubelet
	switch {
	case ready:
		milestone = MilestoneReady
	case !healthy:
		return "", nil
	}
	if _, err = w.WaitFor(ctx, milestone); err == nil {
		return "", nil
	}
	e, ok := errors.AsType[*MilestoneError](err)
	if !ok || e.Milestone == MilestoneKubelet && healthy || ctx.Err() == nil {
		return "", err
	}
	away := w.Away(context.WithoutCancel(ctx))
	if away == nil {
		return "", err
	}
	return "the API server was away, so nobody could see whether the Node is Ready again: " + away.Error(), nil
}

// Away says why the API server can't be asked for the Node; nil where it answers,
// if only to refuse.
func (w NodeWatcher) Away(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	_, err := w.look(ctx)
	at, _ := errors.AsType[*Error](err)
	switch {
	case at == nil, at.Layer == LayerTLS, apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return nil
	}
	return err
}

// look reads the Node with the node's own credential.
func (w NodeWatcher) look(ctx context.Context) (*core.Node, error) {
	k, err := kubeconfig.Read(w.Host, w.Kubeconfig)
	if err != nil {
		return nil, err
	}
	c, err := NewClient(accessOf(k))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	events, err := c.WatchNode(ctx, w.Node)
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	if ctx.Err() != nil { // a watch that ran out of time before it stood is no error to the library
		return nil, &Error{Layer: LayerHTTP, Host: c.host, Cause: context.Cause(ctx)}
	}
	select {
	case e := <-events.ResultChan():
		if n, ok := e.Object.(*core.Node); ok && e.Type != watch.Deleted {
			return n, nil
		}
		return nil, errWatchEnded
	case <-ctx.Done():
		return nil, fs.ErrNotExist // the server answers, and has no such Node
	}
}
