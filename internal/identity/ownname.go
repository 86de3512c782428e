package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// nodeLook bounds the look at a Node: a server that was there a moment ago answers sooner.
const nodeLook = 2 * time.Second

// leaseDuration is kubelet's nodeLeaseDurationSeconds where nobody chose another.
const leaseDuration = 40 * time.Second

// ownName is a node's name in the cluster, as the certificate for it sees it.
type ownName struct {
	h      host.FS
	c      *desired.ClientCertificate
	client *apiserver.Client
}

// ownName speaks with the new credential, over a connection that began without it; nil is none.
func (i *Issuer) ownName(c *desired.ClientCertificate, cred converge.Credential, over *apiserver.Handshake) (*ownName, error) {
	client, err := apiserver.NewClient(apiserver.Access{Server: c.Server, CA: []byte(c.CA), Certificate: cred.Certificate, Key: cred.Key, Connections: i.connections, Handshake: over})
	if err != nil {
		return nil, err
	}
	return &ownName{i.h, c, client}, nil
}

// look reads the Node; nil where there is none. known is false where the server did not say.
func (n *ownName) look(ctx context.Context) (node *core.Node, known bool) {
	ctx, cancel := context.WithTimeout(ctx, nodeLook)
	defer cancel()
	pauses := apiserver.Intervals(50*time.Millisecond, 500*time.Millisecond)
	for {
		switch node, err := n.client.GetNode(ctx, n.c.NodeName); {
		case err == nil:
			return node, true
		case tellsNothing(err):
			return nil, true
		case !apiserver.Pause(ctx, pauses.NextBackOff()):
			return nil, false
		}
	}
}

// tellsNothing says whether an answer means that nothing is to be learnt: there is no such
// object, or this node may not read it.
func tellsNothing(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// free refuses a name whose Node another machine keeps alive: two kubelets would overwrite
// what the other reports, and both would run the Node's pods. Where nobody can say, it is
// free. It waits only for a Node of another machine that the cluster takes to be alive.
func (n *ownName) free(ctx context.Context, node *core.Node) error {
	if node == nil || isGone(node) || isOwnNode(n.h, node.Status.NodeInfo) {
		return nil
	}
	renewed, err := n.renewed(ctx)
	if err != nil {
		return fmt.Errorf("client certificate for node %s: %w", n.c.NodeName, err)
	}
	if !renewed {
		return nil
	}
	if now, known := n.look(ctx); known { // as the kubelet that renewed has reported it
		node = now
	}
	if node == nil || isOwnNode(n.h, node.Status.NodeInfo) {
		return nil
	}
	return n.taken(node)
}

// isGone says whether the cluster has not heard of a Node's kubelet for longer than it bears
// (node-monitor-grace-period of the controller manager), by its own clock.
func isGone(node *core.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c core.NodeCondition) bool {
		return c.Type == core.NodeReady && c.Status == core.ConditionUnknown
	})
}

// renewed waits until somebody renews the Lease of the Node, or it is due for longer than a
// kubelet that runs takes. Only change counts: the times are by the other machine's clock.
// A node may read its Lease, but not watch it.
func (n *ownName) renewed(ctx context.Context) (bool, error) {
	pauses := apiserver.Intervals(250*time.Millisecond, time.Second)
	until := time.Now().Add(renewal(nil))
	var first *coordination.Lease
	for {
		late := !time.Now().Before(until)
		switch l, err := n.client.GetLease(ctx, core.NamespaceNodeLease, n.c.NodeName); {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case err != nil && tellsNothing(err):
			return false, nil
		case err != nil: // the next look may succeed
		case first == nil:
			first, until = l, time.Now().Add(renewal(l))
			late = false
		case !l.Spec.RenewTime.Equal(first.Spec.RenewTime):
			return true, nil
		}
		if late {
			return false, nil
		}
		apiserver.Pause(ctx, min(pauses.NextBackOff(), max(0, time.Until(until))))
	}
}

// renewal is how long a Lease may be without a renewal by a kubelet that runs. kubelet
// renews it each quarter of its duration, with 4 % of jitter (nodeLeaseRenewIntervalFraction);
// a fifth of that is for servers that are slow.
func renewal(l *coordination.Lease) time.Duration {
	d := leaseDuration
	if l != nil && l.Spec.LeaseDurationSeconds != nil && *l.Spec.LeaseDurationSeconds > 0 {
		d = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	return d / 4 * 6 / 5
}

// taken is the refusal, which names both machines.
func (n *ownName) taken(node *core.Node) *Error {
	name := n.c.NodeName
	said := node.Status.NodeInfo
	var what []string
	for _, a := range node.Status.Addresses {
		what = append(what, fmt.Sprintf("%s %s", a.Type, a.Address))
	}
	if said.KubeletVersion != "" {
		what = append(what, "kubelet "+said.KubeletVersion)
	}
	what = append(what, ids(said.MachineID, said.SystemUUID))
	return &Error{Reason: ReasonTaken, Node: name, Server: n.c.Server,
		Err: fmt.Errorf("another machine is Node %s, and its kubelet runs: it renews Lease %s/%s; it has %s; this machine has %s",
			name, core.NamespaceNodeLease, name, strings.Join(what, ", "), ids(MachineID(n.h), SystemUUID(n.h))),
		Remedy: fmt.Sprintf("give this machine another name, or take the other one out of the cluster first: run berth leave there, or stop its kubelet and delete the Node (kubectl delete node %s); then run again", name)}
}

func ids(machine, system string) string {
	return fmt.Sprintf("machine ID %q, system UUID %q", machine, system)
}
