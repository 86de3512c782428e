package node

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/azureidentity"
)

// azure are the identities of Azure: read by Microsoft Entra ID and Azure Resource
// Manager.
func (v *validation) azure(i *v1alpha1.Identity) {
	if a := azureIdentity(v.config); i.Direct && (a == nil || !azureidentity.Lasting(a)) {
		v.refuse(identityPath.Child("direct"), "kubelet asks for tokens as long as it runs: the identity must be managedIdentity, arc, or servicePrincipal with its secret in a file")
	}
	if m := i.ManagedIdentity; m != nil {
		at := identityPath.Child("managedIdentity")
		v.guid(at.Child("clientId"), m.ClientID)
		v.guid(at.Child("tenantId"), m.TenantID)
	}
	if a := i.Arc; a != nil {
		at := identityPath.Child("arc")
		v.guid(at.Child("subscriptionId"), a.SubscriptionID)
		v.guid(at.Child("tenantId"), a.TenantID)
		v.registration(at.Child("registration"), a.Registration)
		v.arcAgent(at.Child("agent"), a)
		if a.Registration != nil {
			v.tags(at.Child("tags"), a.Tags)
		}
	}
	if s := i.ServicePrincipal; s != nil {
		v.servicePrincipal(identityPath.Child("servicePrincipal"), s)
	}
	if a := i.AzureCLI; a != nil {
		v.guid(identityPath.Child("azureCLI", "tenantId"), a.TenantID)
	}
}

// registration is read by Azure Resource Manager and the agent of Azure Arc.
func (v *validation) registration(at *field.Path, r *v1alpha1.ArcRegistration) {
	if r == nil {
		return
	}
	v.exactlyOne(at, choice{"servicePrincipal", r.ServicePrincipal != nil}, choice{"azureCLI", r.AzureCLI != nil})
	if s := r.ServicePrincipal; s != nil {
		v.servicePrincipal(at.Child("servicePrincipal"), s)
	}
	if a := r.AzureCLI; a != nil {
		v.guid(at.Child("azureCLI", "tenantId"), a.TenantID)
	}
	if r.AssignRole && v.config.Cluster.ResourceID == "" {
		v.refuse(at.Child("assignRole"), "the role is one on the cluster: name cluster.resourceId")
	}
	wanted := arcRegistration(v.config)
	for name, value := range map[string]string{"subscriptionId": wanted.SubscriptionID, "resourceGroup": wanted.ResourceGroup, "location": wanted.Location} {
		if value == "" {
			v.errs = append(v.errs, field.Required(identityPath.Child("arc", name), "where the machine is registered, unless cluster.resourceId and cluster.location say it"))
		}
	}
}

// arcAgent is a package whose scripts run as root: no URL of it goes without a digest.
func (v *validation) arcAgent(at *field.Path, a *v1alpha1.Arc) {
	if a.Agent == nil {
		return
	}
	if a.Registration == nil {
		v.refuse(at, "an agent that is installed anew has registered nothing: name identity.arc.registration")
	}
	v.component(at, v1alpha1.Component{URLs: a.Agent.URLs, SHA256: a.Agent.SHA256})
	for i, text := range a.Agent.URLs {
		if a.Agent.SHA256 == "" && !strings.Contains(text, "#") {
			v.refuse(at.Child("urls").Index(i), "a package runs scripts as root: name its digest in sha256, or in the URL's fragment")
		}
	}
}

// tags are read by azcmagent connect, as one list with commas between, and by Azure
// Resource Manager, which has 50 of them for a resource; one is berth's own.
//
// Source: learn.microsoft.com/azure/azure-resource-manager/management/tag-resources,
// limitations.
func (v *validation) tags(at *field.Path, tags map[string]string) {
	if len(tags) > maxTags {
		v.errs = append(v.errs, field.TooMany(at, len(tags), maxTags))
	}
	for name, value := range tags {
		switch at := at.Key(name); {
		case strings.EqualFold(name, component.RegistrationTag):
			v.refuse(at, "berth itself sets this tag, to know again what it made")
		case name == "" || len(name) > 512 || strings.ContainsAny(name, `<>%&\?/=,'"`):
			v.refuse(at, `a name of 1 to 512 characters without < > %% & \ ? / = , and quotes is expected`)
		case len(value) > 256 || strings.ContainsAny(value, `,'"`):
			v.refuse(at, "a value of at most 256 characters without commas and quotes is expected: the agent takes all tags as one list")
		}
	}
}

const maxTags = 49

func (v *validation) servicePrincipal(at *field.Path, s *v1alpha1.ServicePrincipal) {
	if v.required(at.Child("tenantId"), s.TenantID) {
		v.guid(at.Child("tenantId"), s.TenantID)
	}
	if v.required(at.Child("clientId"), s.ClientID) {
		v.guid(at.Child("clientId"), s.ClientID)
	}
	v.exactlyOne(at, choice{"clientSecretFile", s.ClientSecretFile != ""}, choice{"clientSecretEnv", s.ClientSecretEnv != ""},
		choice{"clientSecret", s.ClientSecret != ""}, choice{"clientCertificateFile", s.ClientCertificateFile != ""})
	v.file(at.Child("clientCertificateFile"), s.ClientCertificateFile)
	v.file(at.Child("clientSecretFile"), s.ClientSecretFile)
	v.variable(at.Child("clientSecretEnv"), s.ClientSecretEnv)
	v.inline(at.Child("clientSecret"), s.ClientSecret, v.config.Identity.AllowInline, "clientSecretFile")
}

// azureServices are read by berth.
func (v *validation) azureServices(a *v1alpha1.Azure) {
	v.guid(azurePath.Child("serverId"), a.ServerID)
	for name, address := range map[string]string{"authority": a.Authority, "resourceManager": a.ResourceManager} {
		if _, _, ok := serverOf(address); address != "" && !ok {
			v.expect(azurePath.Child(name), address, "expected https://name or https://name:port, without path")
		}
	}
	if *a != (v1alpha1.Azure{}) && azureIdentity(v.config) == nil {
		v.refuse(azurePath, "identity is none of Azure: nothing asks these services")
	}
}

func (v *validation) guid(at *field.Path, text string) {
	if text != "" && !guidForm().MatchString(text) {
		v.expect(at, text, "expected a GUID")
	}
}
