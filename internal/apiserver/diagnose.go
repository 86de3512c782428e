package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/host"
)

// diagnoseTimeout bounds the questions asked after the wait has ended.
const diagnoseTimeout = 5 * time.Second

// diagnose says why the next milestone was not reached, as precisely as what was
// seen allows.
func (w *nodeWait) diagnose(ctx context.Context, lost Reason) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnoseTimeout)
	defer cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &MilestoneError{Milestone: w.reached.next(), Err: context.Cause(ctx)}
	switch {
	case lost != "" || e.Milestone == MilestoneKubelet || crashed(w.unit):
		w.blameKubelet(after, e, lost)
	case e.Milestone == MilestoneRegistered:
		w.blameRegistration(after, e)
	default:
		w.blameNode(after, e)
	}
	return e
}

func (w *nodeWait) blameKubelet(ctx context.Context, e *MilestoneError, lost Reason) {
	u := w.unit
	state := fmt.Sprintf("%s is %s (%s), result %s, exit status %d, %d restarts", w.Unit, u.ActiveState, u.SubState, u.Result, u.ExecMainStatus, u.NRestarts)
	switch {
	case lost == ReasonKubeletMissing:
		e.Reason, e.Detail, e.Remedy = lost, fmt.Sprintf("%s: load state %s", w.Unit, u.LoadState), "see systemctl status "+w.Unit
	case lost != "" || crashed(u) || u.NRestarts > 0 && !w.healthy:
		e.Reason, e.Detail, e.Remedy = ReasonKubeletCrash, state+w.lastLogLines(ctx), "see journalctl -u "+w.Unit
	case w.unitErr == nil && u.ActiveState != "" && u.ActiveState != "active":
		e.Reason, e.Detail, e.Remedy = ReasonKubeletNotStarted, state, "something that the unit waits for is not there: see systemctl list-jobs"
	default:
		e.Reason, e.Detail, e.Remedy = ReasonKubeletUnhealthy, fmt.Sprintf("%s: %v%s", w.Healthz, w.health, w.tail(ctx)), "see journalctl -u "+w.Unit
	}
}

// crashed says whether a unit's last run ended badly and no other has begun.
func crashed(u host.UnitStatus) bool {
	return u.ActiveState == "failed" || u.SubState == "auto-restart" || u.Result != "" && u.Result != "success"
}

func (w *nodeWait) blameRegistration(ctx context.Context, e *MilestoneError) {
	switch {
	case errors.Is(w.nodeErr, fs.ErrNotExist):
		w.blameCredential(ctx, e)
	case w.nodeErr != nil && !errors.Is(w.nodeErr, errWatchEnded):
		blameServer(e, w.nodeErr)
	case w.node != nil:
		e.Reason = ReasonStaleNode
		e.Detail = fmt.Sprintf("Node %s (uid %s) speaks of boot %q, this one is %q%s", w.Node, w.node.UID, w.node.Status.NodeInfo.BootID, w.boot, w.tail(ctx))
		e.Remedy = "another machine may use the same node name; else delete the Node"
	case !w.watching && w.nodeErr == nil:
		e.Reason, e.Detail = ReasonNotRegistered, "kubelet runs; the API server has not said yet whether there is a Node "+w.Node+w.tail(ctx)
		e.Remedy = "see journalctl -u " + w.Unit
	default:
		e.Reason, e.Detail = ReasonNotRegistered, "kubelet runs and the API server answers, but there is no Node "+w.Node+w.tail(ctx)
		e.Remedy = "see journalctl -u " + w.Unit
	}
}

// blameServer names what stands between this machine and the API server.
func blameServer(e *MilestoneError, err error) {
	e.Detail = err.Error()
	at, _ := errors.AsType[*Error](err)
	switch {
	case apierrors.IsUnauthorized(err):
		e.Reason, e.Remedy = ReasonUnauthorized, "the cluster does not know the node's credential: was it issued by another cluster?"
	case apierrors.IsForbidden(err):
		e.Reason, e.Remedy = ReasonForbidden, "the cluster's node authorization does not let the node read its own Node"
	case at != nil:
		e.Reason, e.Remedy = Reason(at.Layer), at.Hint()
	default:
		e.Reason, e.Remedy = ReasonNoCredential, "look at kubelet's kubeconfig and certificate"
	}
}

func (w *nodeWait) blameNode(ctx context.Context, e *MilestoneError) {
	if w.node == nil {
		e.Reason, e.Detail = ReasonNotReady, "the Node was deleted while it was waited for"
		return
	}
	c := readyCondition(w.node)
	if c == nil {
		e.Reason, e.Detail = ReasonNotReady, "kubelet has not posted a status yet"+w.tail(ctx)
		return
	}
	e.Detail = describe(c)
	e.Reason, e.Remedy = blameCondition(c)
	if e.Reason == ReasonNotReady {
		e.Detail += w.tail(ctx)
	}
	if w.nodeErr != nil {
		e.Detail += fmt.Sprintf(" (as last seen; since then: %v)", w.nodeErr)
	}
}

// blameCondition reads kubelet's own words for what keeps it from being Ready.
func blameCondition(c *core.NodeCondition) (Reason, string) {
	for _, said := range []struct {
		text   string
		reason Reason
		hint   string
	}{
		{"NetworkPluginNotReady", ReasonCNINotReady, "no CNI configuration has appeared in /etc/cni/net.d: is the cluster's network add-on running on this node?"},
		{"NetworkReady=false", ReasonCNINotReady, "see /etc/cni/net.d and the log of the cluster's network add-on"},
		{"cni plugin not initialized", ReasonCNINotReady, "see /etc/cni/net.d and the log of the cluster's network add-on"},
		{"container runtime", ReasonRuntimeNotReady, "see journalctl -u containerd"},
		{"RuntimeReady=false", ReasonRuntimeNotReady, "see journalctl -u containerd"},
	} {
		if strings.Contains(c.Message, said.text) {
			return said.reason, said.hint
		}
	}
	return ReasonNotReady, "see journalctl -u kubelet"
}
