package desired

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// AzureKind is the way in which a machine proves to Microsoft Entra ID who it is.
type AzureKind string

// The ways.
const (
	// AzureManagedIdentity: the instance metadata service of a virtual machine.
	AzureManagedIdentity AzureKind = "managedIdentity"
	// AzureArc: the agent of Azure Arc on this machine.
	AzureArc AzureKind = "arc"
	// AzureServicePrincipal: an application with a secret or a certificate.
	AzureServicePrincipal AzureKind = "servicePrincipal"
	// AzureCLI: the login of whoever runs berth.
	AzureCLI AzureKind = "azureCLI"
)

// AzureIdentity is who the machine is to Microsoft Entra ID, and for which server it
// may have tokens.
type AzureIdentity struct {
	Kind AzureKind `json:"kind"`
	// TenantID, ClientID and ServerID are GUIDs. ServerID is the application of the
	// API server: the audience of every token.
	TenantID string `json:"tenantId,omitempty"`
	ClientID string `json:"clientId,omitempty"`
	ServerID string `json:"serverId"`
	// Authority is where an application has its tokens from, e.g.
	// https://login.microsoftonline.com.
	Authority string `json:"authority,omitempty"`
	// One of the four is what an application proves itself with: a file that holds the
	// secret alone, a variable of the environment, the secret, or a file with a
	// certificate and its key, PEM.
	ClientSecretFile      string `json:"clientSecretFile,omitempty"`
	ClientSecretEnv       string `json:"clientSecretEnv,omitempty"`
	ClientSecret          Secret `json:"clientSecret,omitempty"`
	ClientCertificateFile string `json:"clientCertificateFile,omitempty"`
}

var azureGUID = lazyregexp.New(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Validate says what keeps an identity from having tokens.
func (a *AzureIdentity) Validate() error {
	for name, id := range map[string]string{"tenantId": a.TenantID, "clientId": a.ClientID, "serverId": a.ServerID} {
		if id != "" && !azureGUID().MatchString(id) {
			return fmt.Errorf("%s %q is no GUID", name, id)
		}
	}
	if a.ServerID == "" {
		return errors.New("serverId is missing")
	}
	switch a.Kind {
	case AzureManagedIdentity, AzureArc, AzureCLI:
		return nil
	case AzureServicePrincipal:
		return a.validateApplication()
	}
	return fmt.Errorf("kind %q is none of managedIdentity, arc, servicePrincipal and azureCLI", a.Kind)
}

func (a *AzureIdentity) validateApplication() error {
	if a.TenantID == "" || a.ClientID == "" {
		return errors.New("a service principal needs tenantId and clientId")
	}
	u, err := url.Parse(a.Authority)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("authority %q is no https URL", a.Authority)
	}
	proofs := 0
	for _, p := range []string{a.ClientSecretFile, a.ClientSecretEnv, a.ClientSecret.Reveal(), a.ClientCertificateFile} {
		if p != "" {
			proofs++
		}
	}
	if proofs != 1 {
		return errors.New("a service principal needs one of clientSecretFile, clientSecretEnv, clientSecret and clientCertificateFile")
	}
	return nil
}
