package provision

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/azurecluster"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// Refer adds what a document refers to to the facts. A file that is not there is
// left out: what that means the document's contract says. A cluster is asked for its
// CA only where the machine does not have one that fits. observe is told of the steps of
// what events tell of.
func Refer(ctx context.Context, h host.Host, r component.References, f component.Facts, observe converge.Observer) (component.Facts, error) {
	for _, p := range r.Files {
		text, err := h.ReadFile(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return f, err
		case f.Files == nil:
			f.Files = map[string][]byte{}
		}
		f.Files[p] = text
	}
	if r.Discovery != nil {
		var err error
		if f.ClusterCA, err = discover(ctx, h, r.Discovery); err != nil {
			return f, err
		}
	}
	if r.Azure != nil {
		c, err := askAzure(ctx, h, r.Azure, f)
		if err != nil {
			return f, err
		}
		f.ClusterServer, f.ClusterCA = c.Server, []byte(c.CA)
	}
	if r.CloudCA != nil {
		var err error
		if f.CloudCAs, err = cloudCAs(ctx, h, r.CloudCA, azure.CloudCAs, observe); err != nil {
			return f, err
		}
	}
	if q := r.Settings; q != nil {
		q.Server = cmp.Or(q.Server, f.ClusterServer)
		f.Cluster = askSettings(ctx, h, q, caOf(q, f))
	}
	return f, nil
}

// askAzure asks how a cluster is reached. What was said before is on the machine: it
// counts while the machine is a node of that cluster, and where Azure does not answer.
// Else the cluster may have been made anew under its name.
func askAzure(ctx context.Context, h host.Host, a *component.AzureCluster, f component.Facts) (azurecluster.Cluster, error) {
	known, ok := knownCluster(h, a.ResourceID)
	if ok && isNodeOf(h, known) {
		return known, nil
	}
	via := a.Via
	for _, p := range a.CAFiles {
		via.CAs = append(via.CAs, string(f.Files[p]))
	}
	c, err := azure.New(h).Cluster(ctx, a.Identity, via, a.Manager, a.ResourceID)
	if ok && err != nil && ctx.Err() == nil && azure.Silent(err) {
		return known, nil
	}
	return c, err
}

// knownCluster is what Azure said of a cluster before.
func knownCluster(h host.FS, resourceID string) (azurecluster.Cluster, bool) {
	text, err := h.ReadFile(azurecluster.Path)
	if err != nil {
		return azurecluster.Cluster{}, false
	}
	known, err := azurecluster.Parse(text)
	return known, err == nil && strings.EqualFold(known.ResourceID, resourceID)
}

// Settled says whether the machine is a node of the cluster that a document means; server
// is the one that it names, if it names one.
func Settled(h host.Host, r component.References, server string) bool {
	if r.Azure != nil {
		known, ok := knownCluster(h, r.Azure.ResourceID)
		return ok && isNodeOf(h, known)
	}
	ca, err := h.ReadFile(kubelet.CAFile)
	return err == nil && isNodeOf(h, azurecluster.Cluster{Server: server, CA: string(ca)})
}

// isNodeOf says whether the machine has a certificate of a node of the cluster that is
// valid, or kubelet shows tokens to that cluster.
func isNodeOf(h host.Host, c azurecluster.Cluster) bool {
	name, err := identity.NodeName(h, kubelet.Kubeconfig)
	if err != nil || name == "" {
		return false
	}
	if k, err := kubeconfig.Read(h, kubelet.Kubeconfig); err == nil && k.Plugin != nil {
		return identity.SameServer(k.Server, c.Server) && string(k.CA) == c.CA
	}
	ok, _, err := identity.New(h).Valid(h, &desired.ClientCertificate{NodeName: name, Server: c.Server, CA: c.CA, CAFile: kubelet.CAFile, Kubeconfig: kubelet.Kubeconfig})
	return ok && err == nil
}

func discover(ctx context.Context, h host.FS, d *component.Discovery) ([]byte, error) {
	if known, err := h.ReadFile(d.Known); err == nil && apiserver.Pinned(known, d.Pin) {
		return known, nil
	}
	token, err := identity.BootstrapToken(h, d.TokenFile, d.TokenEnv, d.Token)
	if err != nil {
		return nil, &apiserver.DiscoveryError{Server: d.Server, Err: err}
	}
	return apiserver.ClusterCA(ctx, d.Server, d.Pin, token)
}
