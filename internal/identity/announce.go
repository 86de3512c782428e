package identity

import (
	"context"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// Announce creates the Node that kubelet would register, so that kubelet finds
// it and needs only report its status. A Node that is there already is left: Issue has made sure that no other machine keeps it alive.
// None is created while others configure kubelet too.
func (i *Issuer) Announce(ctx context.Context, c *desired.ClientCertificate, cred converge.Credential) (created bool, err error) {
	if others, err := i.h.ReadDir(c.Announce.Unless); err == nil && len(others) > 0 {
		return false, nil
	}
	client, err := apiserver.NewClient(apiserver.Access{Server: c.Server, CA: []byte(c.CA), Certificate: cred.Certificate, Key: cred.Key, Connections: i.connections})
	if err != nil {
		return false, fmt.Errorf("create node %s: %w", c.NodeName, err)
	}
	defer client.HandOn(i.connections)
	if err := client.CreateNode(ctx, nodeObject(c, i.h.Now())); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("create node %s: %w", c.NodeName, err)
	} else if err != nil {
		return false, nil
	}
	return true, nil
}

func nodeObject(c *desired.ClientCertificate, now time.Time) *core.Node {
	n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: c.NodeName, Labels: c.Announce.Labels, Annotations: c.Announce.Annotations}}
	n.Status.Conditions = []core.NodeCondition{notReadyYet(meta.NewTime(now))}
	for _, t := range c.Announce.Taints {
		n.Spec.Taints = append(n.Spec.Taints, core.Taint{Key: t.Key, Value: t.Value, Effect: core.TaintEffect(t.Effect)})
	}
	return n
}

// notReadyYet is the condition of a Node whose kubelet has not run yet. kubelet registers
// with one, too. It reports a Node that became ready at once only where it finds the
// condition (fastNodeStatusUpdate); else not before it has registered, 0.1 s later.
func notReadyYet(now meta.Time) core.NodeCondition {
	return core.NodeCondition{
		Type: core.NodeReady, Status: core.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now,
		Reason: "KubeletNotReady", Message: "kubelet has not started yet",
	}
}
