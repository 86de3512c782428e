package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// drainedPath says that berth took the node out of the scheduler's sight, so that a run
// which comes after one that was cut off gives it back.
const drainedPath = ledger.StateDir + "/drained.json"

// Drain empties the node before another kubelet starts, and has it take pods again when
// it stands. It implements converge.Drainer.
type Drain struct {
	Host host.Host
	// Wanted: the node is emptied; else only what an earlier run began is ended.
	Wanted bool
	// Timeout is how long pods have to go.
	Timeout time.Duration
	// Fits refuses a kubelet that the cluster does not support.
	Fits func(ctx context.Context) error
	// NodeName is as what the owner of a kubeconfig has registered; "" if it is no node.
	NodeName func(kubeconfig string) (string, error)
	// Cluster connects to the API server of a kubeconfig.
	Cluster func(kubeconfig string) (DrainCluster, error)
	// Say tells of each thing that was done.
	Say func(line string)
}

// DrainCluster is the API server as far as it is needed here.
type DrainCluster interface {
	Cluster
	GetNode(ctx context.Context, name string) (*core.Node, error)
}

// drained is what is remembered of a drain.
type drained struct {
	Node string `json:"node"`
}

// Drain implements converge.Drainer. A kubelet that is only configured anew disturbs no
// pod.
func (d *Drain) Drain(ctx context.Context, by converge.Disturbance) error {
	if !slices.Contains(by.Units, kubelet.Unit) || !by.Changes(binaries.Kubelet) {
		return nil
	}
	if err := d.Fits(ctx); err != nil || !d.Wanted {
		return err
	}
	if err := d.empty(ctx); err != nil {
		return &exitcode.Error{Number: exitcode.Internal, During: "drain the node", Err: err,
			Remedy: "Nothing was changed. Have the pods go, or give them more time (--drain-timeout, node.drain.timeout), and run the same command again."}
	}
	return nil
}

func (d *Drain) empty(ctx context.Context) error {
	node, err := d.NodeName(kubelet.Kubeconfig)
	if err != nil || node == "" {
		return err
	}
	c, err := d.Cluster(kubelet.Kubeconfig)
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := c.GetNode(ctx, node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	pods, err := c.ListPods(ctx, node)
	if err != nil {
		return err
	}
	if alone := names(unmanaged(working(pods))); len(alone) > 0 {
		return fmt.Errorf("nothing would start these pods again: %s", strings.Join(alone, ", "))
	}
	if err := d.cordon(ctx, c, n); err != nil {
		return err
	}
	return d.evict(ctx, c, node)
}

// unmanaged are pods that no controller makes again, as kubectl drain counts them.
func unmanaged(pods []core.Pod) []core.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p core.Pod) bool { return meta.GetControllerOf(&p) != nil })
}

// cordon takes the node out of the scheduler's sight. One that somebody else has cordoned
// stays so in the end.
func (d *Drain) cordon(ctx context.Context, c Cluster, n *core.Node) error {
	if n.Spec.Unschedulable {
		return nil
	}
	text, err := json.Marshal(drained{n.Name})
	if err == nil {
		err = host.WriteFile(d.Host, drainedPath, append(text, '\n'), host.Attributes{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("remember the drain: %w", err)
	}
	if _, err := c.PatchNode(ctx, n.Name, unschedulable(true)); err != nil {
		return fmt.Errorf("cordon the node: %w", err)
	}
	d.Say("cordoned node " + n.Name)
	return nil
}

func unschedulable(yes bool) []byte {
	return fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, yes)
}

func (d *Drain) evict(ctx context.Context, c Cluster, node string) error {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	var errs []error
	e := eviction{host: d.Host, cluster: c, node: node, say: d.Say, failed: func(what string, err error) {
		errs = append(errs, fmt.Errorf("%s: %w", what, err))
		cancel()
	}}
	left, err := e.all(ctx)
	if errs = append(errs, err); errors.Join(errs...) != nil {
		return errors.Join(errs...)
	}
	if len(left) > 0 {
		return fmt.Errorf("pods were not gone in %s: %s", d.Timeout, strings.Join(left, ", "))
	}
	return nil
}

// Restore implements converge.Drainer. A node that does not stand as before takes no
// pods until a run has mended it.
func (d *Drain) Restore(ctx context.Context, broken bool) error {
	text, ok, err := ledger.ReadFile(d.Host, drainedPath)
	if err != nil {
		return fmt.Errorf("look for a drain: %w", err)
	}
	if !ok {
		return nil
	}
	if broken {
		d.Say("the node stays cordoned, since it does not stand as before")
		return nil
	}
	var was drained
	if err := json.Unmarshal(text, &was); err == nil {
		if err := d.uncordon(ctx, was.Node); err != nil {
			return fmt.Errorf("uncordon node %s: %w", was.Node, err)
		}
	}
	return ledger.RemoveIfThere(d.Host, drainedPath)
}

func (d *Drain) uncordon(ctx context.Context, node string) error {
	c, err := d.Cluster(kubelet.Kubeconfig)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.PatchNode(ctx, node, unschedulable(false)); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	d.Say("uncordoned node " + node)
	return nil
}
