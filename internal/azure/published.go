package azure

import (
	"fmt"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
)

// Published is the identity that the variables of a published kubeconfig name, as AKS
// Flex Node writes it; ok is false where there is none. Its tokens are for the API
// servers of AKS.
func Published(getenv func(string) string) (a desired.AzureIdentity, ok bool, err error) {
	const method = "AAD_LOGIN_METHOD"
	a = desired.AzureIdentity{ServerID: azureidentity.AKS, TenantID: getenv("AZURE_TENANT_ID")}
	switch m := getenv(method); m {
	case "":
		return a, false, nil
	case "msi":
		a.Kind, a.ClientID = desired.AzureManagedIdentity, getenv("AZURE_CLIENT_ID")
	case "spn":
		a.Kind, a.Authority = desired.AzureServicePrincipal, azureidentity.Authority
		a.ClientID, a.ClientSecret = getenv("AAD_SERVICE_PRINCIPAL_CLIENT_ID"), desired.Secret(getenv("AAD_SERVICE_PRINCIPAL_CLIENT_SECRET"))
	default:
		return a, false, fmt.Errorf("%s is %q: expected msi or spn", method, m)
	}
	return a, true, a.Validate()
}
