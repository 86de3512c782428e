package node

import (
	"cmp"
	"strings"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component/azurecluster"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
)

// resourceManager is that of the public cloud.
const resourceManager = "https://management.azure.com"

// azureIdentity is the identity of Azure that a document names; nil where it names
// another.
func azureIdentity(c *v1alpha1.NodeConfig) *desired.AzureIdentity {
	a := &desired.AzureIdentity{ServerID: strings.ToLower(cmp.Or(c.Azure.ServerID, azureidentity.AKS))}
	switch i := c.Identity; {
	case i.ManagedIdentity != nil:
		a.Kind, a.ClientID, a.TenantID = desired.AzureManagedIdentity, i.ManagedIdentity.ClientID, i.ManagedIdentity.TenantID
	case i.Arc != nil:
		a.Kind, a.TenantID = desired.AzureArc, i.Arc.TenantID
	case i.AzureCLI != nil:
		a.Kind, a.TenantID = desired.AzureCLI, i.AzureCLI.TenantID
	case i.ServicePrincipal != nil:
		s := i.ServicePrincipal
		a.Kind, a.TenantID, a.ClientID = desired.AzureServicePrincipal, s.TenantID, s.ClientID
		a.Authority = strings.TrimSuffix(cmp.Or(c.Azure.Authority, azureidentity.Authority), "/")
		a.ClientSecretFile, a.ClientSecretEnv, a.ClientSecret = s.ClientSecretFile, s.ClientSecretEnv, desired.Secret(s.ClientSecret)
		a.ClientCertificateFile = s.ClientCertificateFile
	default:
		return nil
	}
	return a
}

// identityName is the member of identity that a document has.
func identityName(c *v1alpha1.NodeConfig) string {
	if a := azureIdentity(c); a != nil {
		return string(a.Kind)
	}
	return "bootstrapToken"
}

// asksAzure says whether a document leaves it to Azure to say how the cluster is
// reached.
func asksAzure(c *v1alpha1.NodeConfig) bool {
	return c.Cluster.Server == "" && c.Cluster.ResourceID != "" && azureIdentity(c) != nil
}

// azureCluster makes what Azure said a part of the document.
func (t *translation) azureCluster() error {
	if !asksAzure(t.config) {
		return nil
	}
	at := clusterPath.Child("resourceId")
	if _, _, ok := serverOf(t.facts.ClusterServer); !ok || len(t.facts.ClusterCA) == 0 {
		t.faults = append(t.faults, invalid(at, "Azure has not been asked how the cluster is reached"))
		return nil
	}
	filled := *t.config
	filled.Cluster.Server = t.facts.ClusterServer
	t.config = &filled
	text, err := azurecluster.Marshal(azurecluster.Cluster{ResourceID: filled.Cluster.ResourceID, Server: t.facts.ClusterServer, CA: string(t.facts.ClusterCA)})
	if err != nil {
		return err
	}
	t.add(at, &desired.File{Path: azurecluster.Path, Content: desired.Bytes(text), Mode: 0o600, Life: desired.Managed})
	return nil
}

// notRegistered are the members of a document that say how a machine is registered with
// Azure Arc: one that has an identity is registered already.
func notRegistered(a *v1alpha1.Arc) (out []string) {
	if a == nil {
		return nil
	}
	for _, m := range []choice{{"subscriptionId", a.SubscriptionID != ""}, {"machineName", a.MachineName != ""},
		{"resourceGroup", a.ResourceGroup != ""}, {"location", a.Location != ""}, {"tags", len(a.Tags) > 0}} {
		if m.given {
			out = append(out, m.name)
		}
	}
	return out
}
