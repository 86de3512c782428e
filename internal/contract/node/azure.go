package node

import (
	"cmp"
	"strings"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component"
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
		*a = application(c, i.ServicePrincipal)
	default:
		return nil
	}
	return a
}

func application(c *v1alpha1.NodeConfig, s *v1alpha1.ServicePrincipal) desired.AzureIdentity {
	return desired.AzureIdentity{
		Kind: desired.AzureServicePrincipal, TenantID: s.TenantID, ClientID: s.ClientID, ServerID: strings.ToLower(cmp.Or(c.Azure.ServerID, azureidentity.AKS)),
		Authority:        strings.TrimSuffix(cmp.Or(c.Azure.Authority, azureidentity.Authority), "/"),
		ClientSecretFile: s.ClientSecretFile, ClientSecretEnv: s.ClientSecretEnv, ClientSecret: desired.Secret(s.ClientSecret),
		ClientCertificateFile: s.ClientCertificateFile,
	}
}

// Registrar is who registers a machine with Azure Arc; nil for nobody.
func Registrar(c *v1alpha1.NodeConfig) *desired.AzureIdentity {
	if c.Identity.Arc == nil {
		return nil
	}
	r := c.Identity.Arc.Registration
	switch {
	case r == nil:
		return nil
	case r.ServicePrincipal != nil:
		a := application(c, r.ServicePrincipal)
		return &a
	case r.AzureCLI != nil:
		return &desired.AzureIdentity{Kind: desired.AzureCLI, TenantID: cmp.Or(r.AzureCLI.TenantID, c.Identity.Arc.TenantID), ServerID: azureidentity.AKS}
	}
	return nil
}

// arcClouds are the agent's words for clouds of their own, by their resource manager.
var arcClouds = map[string]string{
	"https://management.usgovcloudapi.net": "AzureUSGovernment", "https://management.chinacloudapi.cn": "AzureChinaCloud",
}

// arcRegistration is the machine of Azure Arc that the document means; what it does not
// say is the cluster's. nil where nobody is to register it.
func arcRegistration(c *v1alpha1.NodeConfig) *component.ArcRegistration {
	a := c.Identity.Arc
	if a == nil || a.Registration == nil {
		return nil
	}
	manager := strings.TrimSuffix(cmp.Or(c.Azure.ResourceManager, resourceManager), "/")
	r := &component.ArcRegistration{SubscriptionID: a.SubscriptionID, ResourceGroup: a.ResourceGroup, Name: a.MachineName, Location: cmp.Or(a.Location, c.Cluster.Location),
		Tags: a.Tags, By: Registrar(c), Manager: manager, Cloud: arcClouds[manager], Via: wayOut(c), CAFiles: c.Trust.CAFiles}
	if parts := strings.Split(c.Cluster.ResourceID, "/"); len(parts) > 4 {
		r.SubscriptionID, r.ResourceGroup = cmp.Or(r.SubscriptionID, parts[2]), cmp.Or(r.ResourceGroup, parts[4])
	}
	if a.Registration.AssignRole {
		r.ClusterID = c.Cluster.ResourceID
	}
	if a.Agent != nil {
		r.Agent = arcPackage(c, a.Agent)
	}
	return r
}

// arcPackage is the package of the agent, as it was downloaded.
func arcPackage(c *v1alpha1.NodeConfig, a *v1alpha1.ArcAgent) *desired.Artifact {
	out := &desired.Artifact{Base: desired.Base{Field: identityPath.Child("arc", "agent").String()}, Name: component.ArcPackage,
		Files: []desired.ArtifactFile{{Path: component.ArcPackageFile, Mode: 0o600}}, Via: wayOut(c)}
	return download(c, out, v1alpha1.Component{URLs: a.URLs, SHA256: a.SHA256})
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
		t.errs = append(t.errs, invalid(at, "Azure has not been asked how the cluster is reached"))
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
	if a == nil || a.Registration != nil {
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
