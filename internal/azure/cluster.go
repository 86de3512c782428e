package azure

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/component/azurecluster"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// UserRole is the least role with which Azure says how a cluster is reached.
const UserRole = "Azure Kubernetes Service Cluster User Role"

// Cluster asks Azure how an AKS cluster is reached, by the endpoint for users: what an
// administrator's credential would hold stays where it is.
func (s *Source) Cluster(ctx context.Context, a *desired.AzureIdentity, via *desired.Egress, manager, resourceID string) (azurecluster.Cluster, error) {
	out := azurecluster.Cluster{ResourceID: strings.ToLower(resourceID)}
	m, err := s.Manager(ctx, a, via, manager)
	if err != nil {
		return out, err
	}
	defer m.Close()
	return m.Cluster(ctx, resourceID, false)
}

// Cluster asks how a cluster is reached. fresh: the identity has only just been given
// the role, so that Azure may not know of it yet and is asked again for a while.
func (m *Manager) Cluster(ctx context.Context, resourceID string, fresh bool) (azurecluster.Cluster, error) {
	during := "ask Azure how the cluster " + resourceID + " is reached"
	out := azurecluster.Cluster{ResourceID: strings.ToLower(resourceID)}
	got, err := m.userCredential(ctx, resourceID, fresh)
	if err == nil && got.status != http.StatusOK {
		err = got.refusal()
	}
	if err != nil {
		return out, failed(during, clusterRemedy(err), err)
	}
	out.Server, out.CA, err = userCredential(got.body)
	if err != nil {
		return out, failed(during, "Name cluster.server and cluster.caFile instead.", err)
	}
	return out, nil
}

// propagation is how long Azure may take to know a new assignment everywhere: some
// minutes.
//
// Source: learn.microsoft.com/azure/role-based-access-control/troubleshooting, "Role
// assignment changes are not being detected" (up to 10 minutes).
const propagation = 10 * time.Minute

// replication is how long a new identity may be unknown where roles are given.
//
// Source: learn.microsoft.com/azure/role-based-access-control/troubleshooting, "Symptom -
// Assigning a role to a new principal sometimes fails".
const replication = 3 * time.Minute

func (m *Manager) userCredential(ctx context.Context, resourceID string, fresh bool) (answer, error) {
	return m.persist(ctx, propagation, func(ctx context.Context) (answer, error) {
		return m.call(ctx, http.MethodPost, resourceID+"/listClusterUserCredential", clusterVersion, nil, commonPatience)
	}, func(got answer) bool { return fresh && got.status == http.StatusForbidden })
}

// userCredential is server and CA of the answer. The credential in it is not used.
func userCredential(body []byte) (server, ca string, err error) {
	var said struct {
		Kubeconfigs []struct {
			Value string `json:"value"`
		} `json:"kubeconfigs"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return "", "", fmt.Errorf("the answer can't be read: %w", err)
	}
	if len(said.Kubeconfigs) == 0 {
		return "", "", errors.New("the answer holds no kubeconfig")
	}
	text, err := base64.StdEncoding.DecodeString(said.Kubeconfigs[0].Value)
	if err != nil {
		return "", "", fmt.Errorf("its kubeconfig can't be read: %w", err)
	}
	k, err := kubeconfig.Parse(text, "/")
	if err != nil {
		return "", "", err
	}
	u, err := url.Parse(k.Server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "", "", errors.New("its kubeconfig names no https server")
	}
	if block, _ := pem.Decode(k.CA); block == nil || block.Type != "CERTIFICATE" {
		return "", "", errors.New("its kubeconfig holds no CA")
	}
	return k.Server, string(k.CA), nil
}

func clusterRemedy(err error) string {
	e, ok := errors.AsType[*StatusError](err)
	switch {
	case !ok:
		return "Check that Azure Resource Manager (azure.resourceManager) is reachable from this machine: DNS, firewall, proxy; or name cluster.server and cluster.caFile."
	case serverBusy(e.Status):
		return "Azure Resource Manager is busy: try again in some minutes, or name cluster.server and cluster.caFile."
	case e.Status == http.StatusForbidden:
		return "Give the identity the role " + UserRole + " on the cluster, or name cluster.server and cluster.caFile."
	case e.Status == http.StatusNotFound:
		return "Check cluster.resourceId: no such cluster is there, or it is in another subscription or tenant."
	case e.Status == http.StatusUnauthorized:
		return "Check that the identity is of the cluster's tenant."
	}
	return "Try again in some minutes, or name cluster.server and cluster.caFile."
}
