package join

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/join/drained"
	"github.com/berth-dev/berth/internal/provision"
)

// Drain empties the node before another kubelet starts, and has it take pods again when
// it stands. It implements converge.Drainer.
type Drain struct {
	Host host.Host
	// Wanted: the node is emptied; else only what an earlier run began is ended.
	Wanted bool
	// Program is the path of berth, for what ends a drain that no run does.
	Program string
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

// Drain implements converge.Drainer. A kubelet that is only configured anew, or that comes
// back as it was, disturbs no pod, and does not need the API server.
func (d *Drain) Drain(ctx context.Context, by converge.Disturbance) error {
	if !slices.Contains(by.Units, kubelet.Unit) || !by.Changes(binaries.Kubelet) || by.Repairs(binaries.Kubelet) {
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
	node, kubeconfig, err := d.node()
	if err != nil || node == "" {
		return err
	}
	c, err := d.Cluster(kubeconfig)
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

// node is as what the machine is registered, and the kubeconfig that says so; "" if it is
// no node.
func (d *Drain) node() (name, kubeconfig string, err error) {
	for _, k := range provision.Kubeconfigs(d.Host) {
		name, err = d.NodeName(k)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil || name != "" {
			return name, k, err
		}
	}
	return "", "", nil
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
	note := &drained.Note{Node: n.Name, UID: string(n.UID), Since: d.Host.Now()}
	if err := note.Save(d.Host); err != nil {
		return err
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

// Restore implements converge.Drainer. A node that does not stand takes no pods until a
// run has mended it: one that came to nothing has not.
func (d *Drain) Restore(ctx context.Context, o converge.Outcome) error {
	was, err := drained.Load(d.Host)
	switch {
	case err != nil || was == nil:
		return err
	case was.Damaged():
		d.Say(was.String() + ": " + was.Remedy())
		return drained.Forget(ctx, d.Host)
	case o == converge.Returned:
		d.Say("node " + was.Node + " takes pods again once kubelet runs")
		return drained.Arm(ctx, d.Host, d.Program)
	case o == converge.Broken:
		err = d.breaks(ctx, was)
	}
	if was.Broken && o != converge.Stands {
		d.Say("node " + was.Node + " stays cordoned, since it does not stand as before")
		return err
	}
	if err := d.giveBack(ctx, was); err != nil {
		return fmt.Errorf("uncordon node %s: %w", was.Node, err)
	}
	return drained.Forget(ctx, d.Host)
}

// breaks remembers that the node does not stand.
func (d *Drain) breaks(ctx context.Context, was *drained.Note) error {
	if err := drained.Disarm(ctx, d.Host); err != nil || was.Broken {
		was.Broken = true
		return err
	}
	was.Broken = true
	return was.Save(d.Host)
}

// giveBack has the Node take pods again. One that this machine is no more, since it has
// another name or is in another cluster, is not its own to change.
func (d *Drain) giveBack(ctx context.Context, was *drained.Note) error {
	name, kubeconfig, err := d.node()
	if err != nil {
		return err
	}
	if name != was.Node {
		d.Say("node " + was.Node + " stays cordoned, since this machine is it no more: kubectl uncordon " + was.Node)
		return nil
	}
	c, err := d.Cluster(kubeconfig)
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := c.GetNode(ctx, name)
	if apierrors.IsNotFound(err) || err == nil && was.UID != "" && string(n.UID) != was.UID {
		return nil // another one, which berth has not cordoned
	}
	if err != nil {
		return err
	}
	if _, err := c.PatchNode(ctx, name, unschedulable(false)); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	d.Say("uncordoned node " + name)
	return nil
}
