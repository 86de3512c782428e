package join

import (
	"context"
	"errors"
	"fmt"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/provision"
)

// errOtherNode: another machine goes by this one's name there.
var errOtherNode = errors.New("is not this machine's")

// recognise refuses a kubeconfig of somebody else's cluster before anything is touched: a
// Node of this machine's name may be another machine's there. Where the cluster does
// not answer, it is asked again before the Node goes.
func (l *leave) recognise(ctx context.Context) error {
	if l.node == "" || l.Kubeconfig == "" {
		return nil
	}
	c, err := l.Cluster(l.Kubeconfig)
	if err == nil {
		defer c.Close()
		l.uid, err = l.ownNode(ctx, c)
	}
	if errors.Is(err, errOtherNode) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return &exitcode.Error{Number: exitcode.Internal, During: "look at Node " + l.node, At: "--kubeconfig " + l.Kubeconfig, Err: err,
			Remedy: "Name a kubeconfig of the cluster that this machine leaves, of somebody who may read and delete Nodes, or give none and delete the Node yourself."}
	}
	return nil
}

// ownNode is the UID of the machine's Node; "" where there is none, unless it is another
// cluster that was asked for it.
func (l *leave) ownNode(ctx context.Context, c Cluster) (uid string, err error) {
	n, err := c.GetNode(ctx, l.node)
	if apierrors.IsNotFound(err) {
		if same, err := l.sameCluster(); err == nil && !same {
			return "", fmt.Errorf("Node %s %w: it is not in this cluster, which is not the one that kubelet has its credential for", l.node, errOtherNode) //nolint:staticcheck // the name of a kind of object begins it
		}
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return string(n.UID), l.isOwn(n)
}

// isOwn compares what a Node says of its machine with this one. A Node whose kubelet has
// never reported says nothing: it counts in the cluster that kubelet has its credential for.
func (l *leave) isOwn(n *core.Node) error {
	said, id := n.Status.NodeInfo, identity.MachineID(l.Host)
	if said.MachineID == "" || id == "" {
		same, err := l.sameCluster()
		if err == nil && !same {
			err = fmt.Errorf("Node %s %w: it says nothing of its machine, and the cluster is not the one that kubelet has its credential for", l.node, errOtherNode) //nolint:staticcheck // the name of a kind of object begins it
		}
		return err
	}
	if said.MachineID != id {
		return l.another("machine id", said.MachineID, id)
	}
	uuid := identity.SystemUUID(l.Host)
	if uuid != "" && said.SystemUUID != "" && !strings.EqualFold(uuid, said.SystemUUID) {
		return l.another("system UUID", said.SystemUUID, uuid)
	}
	return nil
}

// sameCluster says whether the kubeconfig is of the cluster that kubelet's is of.
func (l *leave) sameCluster() (same bool, err error) {
	for _, own := range provision.Kubeconfigs(l.Host) {
		if same, err = l.SameCluster(l.Kubeconfig, own); err == nil {
			return same, nil
		}
	}
	return false, err
}

func (l *leave) another(what, said, is string) error {
	return fmt.Errorf("Node %s %w: its %s is %s, that of this machine %s", l.node, errOtherNode, what, said, is) //nolint:staticcheck // the name of a kind of object begins it
}

// removeNode deletes the Node, which its own identity may not. The API server compares
// the UID: what came under its name since is another's.
func (l *leave) removeNode(ctx context.Context) {
	if l.node == "" {
		return
	}
	if l.Kubeconfig == "" {
		line := "Node " + l.node + " is still in the cluster: kubectl delete node " + l.node
		if l.cordoned {
			line += "; it is cordoned: kubectl uncordon " + l.node + " if the machine joins again"
		}
		l.stay(line)
		return
	}
	c, err := l.Cluster(l.Kubeconfig)
	if err == nil {
		defer c.Close()
		if l.uid == "" {
			l.uid, err = l.ownNode(ctx, c)
		}
	}
	if err == nil && l.uid != "" {
		err = c.DeleteNode(ctx, l.node, l.uid)
	}
	switch {
	case err != nil:
		l.failed("delete Node "+l.node, err)
	case l.uid != "":
		l.Say("deleted Node " + l.node)
	}
}
