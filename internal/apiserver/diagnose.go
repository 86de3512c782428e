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

// diagnose says why the next stage was not reached, as precisely as what was
// seen allows.
func (v *vigil) diagnose(ctx context.Context, lost Code) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnoseTimeout)
	defer cancel()
	v.mu.Lock()
	defer v.mu.Unlock()
	e := &StageError{Stage: v.reached.next(), Err: context.Cause(ctx)}
	switch {
	case lost != "" || e.Stage == StageKubelet || crashed(v.unit):
		v.blameKubelet(after, e, lost)
	case e.Stage == StageRegistered:
		v.blameRegistration(after, e)
	default:
		v.blameNode(after, e)
	}
	return e
}

func (v *vigil) blameKubelet(ctx context.Context, e *StageError, lost Code) {
	u := v.unit
	state := fmt.Sprintf("%s is %s (%s), result %s, exit status %d, %d restarts", v.Unit, u.ActiveState, u.SubState, u.Result, u.ExecMainStatus, u.NRestarts)
	switch {
	case lost == CodeKubeletMissing:
		e.Reason, e.Detail, e.Remedy = lost, fmt.Sprintf("%s: load state %s", v.Unit, u.LoadState), "see systemctl status "+v.Unit
	case lost != "" || crashed(u) || u.NRestarts > 0 && !v.healthy:
		e.Reason, e.Detail, e.Remedy = CodeKubeletCrash, state+v.lastWords(ctx), "see journalctl -u "+v.Unit
	case v.unitErr == nil && u.ActiveState != "" && u.ActiveState != "active":
		e.Reason, e.Detail, e.Remedy = CodeKubeletNotStarted, state, "something that the unit waits for is not there: see systemctl list-jobs"
	default:
		e.Reason, e.Detail, e.Remedy = CodeKubeletUnhealthy, fmt.Sprintf("%s: %v%s", v.Healthz, v.health, v.tail(ctx)), "see journalctl -u "+v.Unit
	}
}

// crashed says whether a unit's last run ended badly and no other has begun.
func crashed(u host.UnitStatus) bool {
	return u.ActiveState == "failed" || u.SubState == "auto-restart" || u.Result != "" && u.Result != "success"
}

func (v *vigil) blameRegistration(ctx context.Context, e *StageError) {
	switch {
	case errors.Is(v.nodeErr, fs.ErrNotExist):
		v.blameCredential(ctx, e)
	case v.nodeErr != nil && !errors.Is(v.nodeErr, errWatchEnded):
		blameServer(e, v.nodeErr)
	case v.node != nil:
		e.Reason = CodeStaleNode
		e.Detail = fmt.Sprintf("Node %s (uid %s) speaks of boot %q, this one is %q%s", v.Node, v.node.UID, v.node.Status.NodeInfo.BootID, v.boot, v.tail(ctx))
		e.Remedy = "another machine may use the same node name; else delete the Node"
	case !v.watching && v.nodeErr == nil:
		e.Reason, e.Detail = CodeNotRegistered, "kubelet runs; the API server has not said yet whether there is a Node "+v.Node+v.tail(ctx)
		e.Remedy = "see journalctl -u " + v.Unit
	default:
		e.Reason, e.Detail = CodeNotRegistered, "kubelet runs and the API server answers, but there is no Node "+v.Node+v.tail(ctx)
		e.Remedy = "see journalctl -u " + v.Unit
	}
}

// blameServer names what stands between this machine and the API server.
func blameServer(e *StageError, err error) {
	e.Detail = err.Error()
	at, _ := errors.AsType[*Error](err)
	switch {
	case apierrors.IsUnauthorized(err):
		e.Reason, e.Remedy = CodeUnauthorized, "the cluster does not know the node's credential: was it issued by another cluster?"
	case apierrors.IsForbidden(err):
		e.Reason, e.Remedy = CodeForbidden, "the cluster's node authorization does not let the node read its own Node"
	case at != nil:
		e.Reason, e.Remedy = Code(at.Stage), at.Hint()
	default:
		e.Reason, e.Remedy = CodeNoCredential, "look at kubelet's kubeconfig and certificate"
	}
}

func (v *vigil) blameNode(ctx context.Context, e *StageError) {
	if v.node == nil {
		e.Reason, e.Detail = CodeNotReady, "the Node was deleted while it was waited for"
		return
	}
	c := readyCondition(v.node)
	if c == nil {
		e.Reason, e.Detail = CodeNotReady, "kubelet has not posted a status yet"+v.tail(ctx)
		return
	}
	e.Detail = describe(c)
	e.Reason, e.Remedy = blameCondition(c)
	if e.Reason == CodeNotReady {
		e.Detail += v.tail(ctx)
	}
	if v.nodeErr != nil {
		e.Detail += fmt.Sprintf(" (as last seen; since then: %v)", v.nodeErr)
	}
}

// blameCondition reads kubelet's own words for what keeps it from being Ready.
func blameCondition(c *core.NodeCondition) (Code, string) {
	for _, said := range []struct {
		words string
		code  Code
		hint  string
	}{
		{"NetworkPluginNotReady", CodeCNINotReady, "no CNI configuration has appeared in /etc/cni/net.d: is the cluster's network add-on running on this node?"},
		{"NetworkReady=false", CodeCNINotReady, "see /etc/cni/net.d and the log of the cluster's network add-on"},
		{"cni plugin not initialized", CodeCNINotReady, "see /etc/cni/net.d and the log of the cluster's network add-on"},
		{"container runtime", CodeRuntimeNotReady, "see journalctl -u containerd"},
		{"RuntimeReady=false", CodeRuntimeNotReady, "see journalctl -u containerd"},
	} {
		if strings.Contains(c.Message, said.words) {
			return said.code, said.hint
		}
	}
	return CodeNotReady, "see journalctl -u kubelet"
}
