package azure

import (
	"fmt"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Published is the identity that the variables of a published kubeconfig name, as AKS
// Flex Node writes it; ok is false where there is none. Its tokens are for the API
// servers of AKS. msi is the identity of a machine that Azure Arc knows, too, which has
// no client id.
func Published(h host.FS, getenv func(string) string) (a desired.AzureIdentity, ok bool, err error) {
	const method = "AAD_LOGIN_METHOD"
	a = desired.AzureIdentity{ServerID: azureidentity.AKS, TenantID: getenv("AZURE_TENANT_ID")}
	switch m := getenv(method); m {
	case "":
		return a, false, nil
	case "msi":
		a.Kind, a.ClientID = desired.AzureManagedIdentity, getenv("AZURE_CLIENT_ID")
		if a.ClientID == "" && hasArc(h, getenv) {
			a.Kind = desired.AzureArc
		}
	case "spn":
		a.Kind, a.Authority = desired.AzureServicePrincipal, azureidentity.Authority
		a.ClientID, a.ClientSecret = getenv("AAD_SERVICE_PRINCIPAL_CLIENT_ID"), desired.Secret(getenv("AAD_SERVICE_PRINCIPAL_CLIENT_SECRET"))
	default:
		return a, false, fmt.Errorf("%s is %q: expected msi or spn", method, m)
	}
	return a, true, a.Validate()
}

// hasArc says whether the agent of Azure Arc is on the machine, as Microsoft's libraries
// find it: by both of its variables or by its program.
func hasArc(h host.FS, getenv func(string) string) bool {
	if getenv(arcVariable) != "" && getenv("IMDS_ENDPOINT") != "" {
		return true
	}
	_, err := h.Lstat("/opt/azcmagent/bin/himds")
	return err == nil
}
