package identity

import (
	"context"
	"fmt"

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
	if err := client.CreateNode(ctx, nodeObject(c)); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("create node %s: %w", c.NodeName, err)
	} else if err != nil {
		return false, nil
	}
	return true, nil
}

func nodeObject(c *desired.ClientCertificate) *core.Node {
	n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: c.NodeName, Labels: c.Announce.Labels, Annotations: c.Announce.Annotations}}
	for _, t := range c.Announce.Taints {
		n.Spec.Taints = append(n.Spec.Taints, core.Taint{Key: t.Key, Value: t.Value, Effect: core.TaintEffect(t.Effect)})
	}
	return n
}
