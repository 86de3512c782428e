package node

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
)

// azure are the identities of Azure: read by Microsoft Entra ID and Azure Resource
// Manager. This version of berth validates them and joins with none.
func (v *validation) azure(i *v1alpha1.Identity) {
	if m := i.ManagedIdentity; m != nil {
		at := identityPath.Child("managedIdentity")
		v.guid(at.Child("clientId"), m.ClientID)
		v.notYet(at)
	}
	if a := i.Arc; a != nil {
		at := identityPath.Child("arc")
		v.guid(at.Child("subscriptionId"), a.SubscriptionID)
		v.guid(at.Child("tenantId"), a.TenantID)
		v.notYet(at)
	}
	if s := i.ServicePrincipal; s != nil {
		v.servicePrincipal(identityPath.Child("servicePrincipal"), s)
		v.notYet(identityPath.Child("servicePrincipal"))
	}
	if a := i.AzureCLI; a != nil {
		v.guid(identityPath.Child("azureCLI", "tenantId"), a.TenantID)
		v.notYet(identityPath.Child("azureCLI"))
	}
}

func (v *validation) servicePrincipal(at *field.Path, s *v1alpha1.ServicePrincipal) {
	if v.required(at.Child("tenantId"), s.TenantID) {
		v.guid(at.Child("tenantId"), s.TenantID)
	}
	if v.required(at.Child("clientId"), s.ClientID) {
		v.guid(at.Child("clientId"), s.ClientID)
	}
	v.exactlyOne(at, choice{"clientSecretFile", s.ClientSecretFile != ""}, choice{"clientSecretEnv", s.ClientSecretEnv != ""},
		choice{"clientSecret", s.ClientSecret != ""})
	v.file(at.Child("clientSecretFile"), s.ClientSecretFile)
	v.variable(at.Child("clientSecretEnv"), s.ClientSecretEnv)
	v.inline(at.Child("clientSecret"), s.ClientSecret, v.config.Identity.AllowInline, "clientSecretFile")
}

func (v *validation) guid(at *field.Path, text string) {
	if text != "" && !guidForm().MatchString(text) {
		v.expect(at, text, "expected a GUID")
	}
}

// notYet refuses what can't be put in force: a machine that joins in another way
// than its document says is worse than one that does not join.
func (v *validation) notYet(at *field.Path) {
	v.faults = append(v.faults, field.Forbidden(at, "this version of berth joins with bootstrapToken or clientCertificate only"))
}
