package join

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/provision"
)

// PodsError is a machine that still has work to do.
type PodsError struct{ Pods []string }

// Error names the pods.
func (e *PodsError) Error() string {
	run := "pods run"
	if len(e.Pods) == 1 {
		run = "pod runs"
	}
	return fmt.Sprintf("%d %s on this machine: %s", len(e.Pods), run, strings.Join(e.Pods, ", "))
}

// Hint says how to go on.
func (e *PodsError) Hint() string {
	return "Drain the node, or use --force: then berth evicts them, and ends what is left."
}

// begin refuses to end what runs, unless it is forced to, and notes that it has begun.
func (l *leave) begin(ctx context.Context) error {
	for _, k := range provision.Kubeconfigs(l.Host) {
		name, err := l.NodeName(k)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.Say("look for the node's name: " + err.Error())
		}
		if name != "" {
			l.cordoned = l.cordoned && name == l.node
			l.node = name
			break
		}
	}
	if err := l.recognise(ctx); err != nil {
		return err
	}
	if !l.Force {
		pods, err := l.pods(ctx)
		if err != nil {
			return fmt.Errorf("look for pods that run: %w", err)
		}
		if len(pods) > 0 {
			return &PodsError{Pods: pods}
		}
	}
	return l.remember(record{Node: l.node, Cordoned: l.cordoned})
}

// pods are the pods of others that run here. Where the API server does not say, the
// container runtime does, which can't tell a daemon's pods from others.
func (l *leave) pods(ctx context.Context) ([]string, error) {
	c, clusterErr := l.cluster()
	if clusterErr == nil {
		defer c.Close()
		var pods []core.Pod
		if pods, clusterErr = c.ListPods(ctx, l.node); clusterErr == nil {
			return names(working(pods)), nil
		}
	}
	if l.hasEndedPods(clusterErr) {
		return nil, nil
	}
	r, err := l.Runtime(ctx)
	if err != nil {
		if !l.running(ctx, kubelet.Unit) {
			return nil, nil // nothing that could run pods runs
		}
		return nil, errors.Join(clusterErr, err)
	}
	defer r.Close()
	boxes, err := r.Sandboxes(ctx)
	if err != nil {
		return nil, errors.Join(clusterErr, err)
	}
	var pods []string
	for _, s := range boxes {
		if s.Ready && !s.Static {
			pods = append(pods, s.String())
		}
	}
	slices.Sort(pods)
	return slices.Compact(pods), nil
}

// cluster is the API server with the node's own credential.
func (l *leave) cluster() (Cluster, error) {
	if l.node == "" {
		return nil, errors.New("the machine has no credential of a node")
	}
	var first error
	for _, k := range provision.Kubeconfigs(l.Host) {
		c, err := l.Cluster(k)
		if err == nil {
			return c, nil
		}
		if first == nil || errors.Is(first, fs.ErrNotExist) && !errors.Is(err, fs.ErrNotExist) {
			first = err
		}
	}
	return nil, first
}

// hasEndedPods says of the error of cluster that a run before this one has ended all pods: it takes
// kubelet's credential after that. A kubelet that came with a boot since has none, so that it
// runs none and hears of no eviction.
func (l *leave) hasEndedPods(err error) bool { return l.cutOff && errors.Is(err, fs.ErrNotExist) }

// working are the pods that have a reason to run here and not elsewhere in the cluster:
// not those of a file, which are nowhere else, nor of a DaemonSet, which come with each
// node.
func working(pods []core.Pod) []core.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p core.Pod) bool {
		_, static := p.Annotations[core.MirrorPodAnnotationKey]
		daemon := slices.ContainsFunc(p.OwnerReferences, func(o meta.OwnerReference) bool { return o.Controller != nil && *o.Controller && o.Kind == "DaemonSet" })
		return static || daemon || p.Status.Phase == core.PodSucceeded || p.Status.Phase == core.PodFailed
	})
}

func names(pods []core.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	slices.Sort(out)
	return out
}

// drain takes the node out of the scheduler's sight and asks the cluster to have the
// pods elsewhere. What is not gone in time ends with the machine's sandboxes.
func (l *leave) drain(ctx context.Context) {
	if !l.running(ctx, kubelet.Unit) {
		return // nobody would end a pod that is evicted
	}
	c, err := l.cluster()
	if l.hasEndedPods(err) {
		return
	}
	if err != nil {
		l.failed("ask the cluster to take the pods", err)
		return
	}
	defer c.Close()
	if _, err := c.PatchNode(ctx, l.node, []byte(`{"spec":{"unschedulable":true}}`)); err != nil {
		if !apierrors.IsNotFound(err) {
			l.failed("cordon the node", err)
		}
		return
	}
	l.Say("cordoned node " + l.node)
	l.cordoned = true
	l.failed("remember that the node is cordoned", l.remember(record{Node: l.node, Cordoned: true}))
	ctx, cancel := context.WithTimeout(ctx, l.DrainTimeout)
	defer cancel()
	e := eviction{host: l.Host, cluster: c, node: l.node, say: l.Say, failed: l.failed}
	left, err := e.all(ctx)
	if err != nil {
		l.failed("evict pods", err)
	}
	why := "which does not evict it"
	if ctx.Err() != nil {
		why = "since it was not gone in " + l.DrainTimeout.String()
	}
	for _, p := range left {
		l.stay("pod " + p + " was ended without the cluster, " + why)
	}
}
