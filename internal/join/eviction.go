package join

import (
	"context"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/host"
)

// The pauses between looks at pods that go. kubelet tells the API server of each end;
// the node's identity may not watch one pod that is gone.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
)

// eviction asks the cluster to have a node's pods elsewhere.
type eviction struct {
	host    host.Host
	cluster Cluster
	node    string
	say     func(line string)
	// failed is told of a pod that can't be evicted, once.
	failed func(what string, err error)
	asked  map[string]bool
	// refused are pods that the cluster will not evict however often it is asked.
	refused map[string]bool
	// failing is why the cluster could not evict a pod when it was asked last.
	failing map[string]error
}

// all evicts until no pod is left that may go, or until ctx ends; then it returns those
// that are left. An API server that fails to answer is asked again, and err is why it did
// not at last.
func (e *eviction) all(ctx context.Context) (left []string, err error) {
	e.asked, e.refused, e.failing = map[string]bool{}, map[string]bool{}, map[string]error{}
	left, err = e.until(ctx)
	for _, name := range left {
		if why := e.failing[name]; why != nil {
			e.failed("evict pod "+name, why)
		}
	}
	return left, err
}

func (e *eviction) until(ctx context.Context) (left []string, err error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		pods, failed := e.cluster.ListPods(ctx, e.node)
		switch {
		case ctx.Err() != nil:
			return left, err
		case apierrors.IsForbidden(failed) || apierrors.IsUnauthorized(failed):
			return left, failed
		case failed == nil:
			pods = working(pods)
			if left = names(pods); len(left) == 0 {
				return nil, nil
			}
			for _, p := range pods {
				e.evict(ctx, &p)
			}
			if e.hopeless(pods) {
				return left, nil
			}
		}
		if err = failed; e.host.Sleep(ctx, pause) != nil {
			return left, err
		}
	}
}

// evict asks once for each pod, and again where a disruption budget kept it or the cluster
// could not answer.
func (e *eviction) evict(ctx context.Context, p *core.Pod) {
	if e.asked[string(p.UID)] || p.DeletionTimestamp != nil {
		return
	}
	name := p.Namespace + "/" + p.Name
	err := e.cluster.Evict(ctx, p)
	if ctx.Err() != nil {
		return
	}
	delete(e.failing, name)
	switch {
	case err == nil:
		e.say("evicted pod " + name)
	case apierrors.IsTooManyRequests(err):
		return
	case !isFinal(err):
		e.failing[name] = err
		return
	default:
		e.refused[string(p.UID)] = true
		e.failed("evict pod "+name, err)
	}
	e.asked[string(p.UID)] = true
}

// hopeless says that none of the pods will go: a right is missing, or a webhook said no.
func (e *eviction) hopeless(pods []core.Pod) bool {
	return !slices.ContainsFunc(pods, func(p core.Pod) bool { return !e.refused[string(p.UID)] || p.DeletionTimestamp != nil })
}

// isFinal says whether an answer is final for the request, whatever state the server is in.
func isFinal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err)
}
