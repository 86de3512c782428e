package join

import (
	"context"
	"fmt"
	"path"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
	"github.com/berth-dev/berth/internal/provision"
)

// Peers is what the cluster says of versions. What could not be found out is empty.
type Peers struct {
	// Server is the API server's version, "v1.36.3".
	Server string
	// Kubelet is that of the kubelet that the machine's Node speaks of; Unschedulable
	// and Pods are that Node's.
	Kubelet       string
	Unschedulable bool
	Pods          []core.Pod
}

// PeerSource asks a cluster for Peers, with what the machine has to show.
type PeerSource struct {
	Host host.Host
	// Kubeconfig is where kubelet's is.
	Kubeconfig func() string
	// Tokens gives the token of an identity of Azure for the API server.
	Tokens func(ctx context.Context, a *desired.AzureIdentity, via *desired.Egress) (desired.Secret, error)
}

// Of asks the API server of a state for its version, and for the machine's Node, if
// there is one. Of a machine that comes from another server's cluster nobody knows it.
func (s PeerSource) Of(ctx context.Context, w *Wanted) (out Peers) {
	s.asNode(ctx, w.Server, provision.NodeOf(s.Host, w.State).Name, &out)
	ca, ok := w.State.Lookup(desired.FileID(kubelet.CAFile)).(*desired.File)
	if out.Server != "" || !ok {
		return out
	}
	out.Server = s.version(ctx, w.State, apiserver.Access{Server: w.Server, CA: ca.Content.Data()})
	return out
}

// OfNode asks as the node that the machine is, if it is one of that server's cluster.
func (s PeerSource) OfNode(ctx context.Context, server string) (out Peers) {
	if name, err := identity.NodeName(s.Host, s.Kubeconfig()); err == nil && name != "" {
		s.asNode(ctx, server, name, &out)
	}
	return out
}

// asNode asks with kubelet's credential, if that is for the server.
func (s PeerSource) asNode(ctx context.Context, server, name string, out *Peers) {
	at := s.Kubeconfig()
	k, err := kubeconfig.Read(s.Host, at)
	if err != nil || !identity.SameServer(k.Server, server) {
		return
	}
	c, err := apiserver.Open(s.Host, at)
	if err != nil {
		return
	}
	defer c.Close()
	out.Server, _ = c.ServerVersion(ctx)
	n, err := c.GetNode(ctx, name)
	if err != nil {
		return
	}
	out.Kubelet, out.Unschedulable = n.Status.NodeInfo.KubeletVersion, n.Spec.Unschedulable
	if out.Pods, err = c.ListPods(ctx, name); err != nil {
		out.Unschedulable = false // nobody knows whether it is drained
	}
}

// version is the API server's version; "" where it does not say. Where it tells strangers
// nothing it is asked with what the machine is going to show it.
func (s PeerSource) version(ctx context.Context, st *desired.State, a apiserver.Access) string {
	version, err := askVersion(ctx, a)
	if !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		return version
	}
	if a.Token, err = s.firstToken(ctx, st); err == nil && a.Token != "" {
		version, _ = askVersion(ctx, a)
	}
	return version
}

func askVersion(ctx context.Context, a apiserver.Access) (string, error) {
	c, err := apiserver.NewClient(a)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.ServerVersion(ctx)
}

// firstToken is what a machine that is no node yet shows the API server of a state; "" where
// that is no token. With tokens instead of a certificate the state has the identity alone.
func (s PeerSource) firstToken(ctx context.Context, st *desired.State) (desired.Secret, error) {
	var via *desired.Egress
	for _, r := range st.Resources {
		switch r := r.(type) {
		case *desired.ClientCertificate:
			if r.Azure == nil {
				return identity.BootstrapToken(s.Host, r.TokenFile, r.TokenEnv, r.Token.Reveal())
			}
			return s.Tokens(ctx, r.Azure, r.Via)
		case *desired.Artifact:
			via = r.Via // the document's, for all that it has to reach
		}
	}
	f, ok := st.Lookup(desired.FileID(azureidentity.Path)).(*desired.File)
	if !ok {
		return "", nil
	}
	a, err := azureidentity.Parse(f.Content.Data())
	if err != nil {
		return "", fmt.Errorf("read the machine's identity: %w", err)
	}
	return s.Tokens(ctx, &a, via)
}

// ServerOf is the API server that a state names, which others than the document may have
// said; said is the document's.
func ServerOf(st *desired.State, said string) string {
	for _, r := range st.Resources {
		if cert, ok := r.(*desired.ClientCertificate); ok {
			return cert.Server
		}
	}
	if f, ok := st.Lookup(desired.FileID(kubelet.Kubeconfig)).(*desired.File); ok {
		if k, err := kubeconfig.Parse(f.Content.Data(), path.Dir(kubelet.Kubeconfig)); err == nil {
			return k.Server
		}
	}
	return said
}
