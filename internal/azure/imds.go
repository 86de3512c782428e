package azure

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Where the instance metadata service of a virtual machine is: on its own network
// only, and never behind a proxy.
const (
	imdsAddress = "http://169.254.169.254"
	tokenPath   = "/metadata/identity/oauth2/token"
	imdsVersion = "2018-02-01"
)

// instanceToken asks the instance metadata service for a token of the machine's
// managed identity; client chooses one of several.
//
// Source: learn.microsoft.com/entra/identity/managed-identities-azure-resources,
// "How to use managed identities on an Azure VM to acquire an access token".
func (s *Source) instanceToken(ctx context.Context, resource, client string) (string, error) {
	const during = "ask the instance metadata service (169.254.169.254) for a token"
	values := url.Values{"api-version": {imdsVersion}, "resource": {resource}}
	if client != "" {
		values.Set("client_id", client)
	}
	c := direct(nil)
	defer c.CloseIdleConnections()
	got, err := s.patiently(ctx, c, instancePatience, func() (*http.Request, error) {
		return metadataRequest(s.endpoints.instance+tokenPath, values)
	})
	if err != nil {
		return "", failed(during, instanceRemedy(err, client), err)
	}
	token, err := got.accessToken()
	if err != nil {
		return "", failed(during, instanceRemedy(err, client), err)
	}
	return token, nil
}

func metadataRequest(address string, values url.Values) (*http.Request, error) {
	req, err := http.NewRequest(http.MethodGet, address+"?"+values.Encode(), http.NoBody)
	if err == nil {
		req.Header.Set("Metadata", "true")
	}
	return req, err
}

func instanceRemedy(err error, client string) string {
	e, ok := errors.AsType[*StatusError](err)
	switch {
	case !ok:
		return "Check that this machine is a virtual machine in Azure and that nothing on it closes 169.254.169.254 to root; a machine elsewhere has an identity through Azure Arc (identity.arc)."
	case e.Status == http.StatusBadRequest && client != "":
		return "Check that the managed identity with the client id " + client + " (identity.managedIdentity.clientId) is assigned to this virtual machine."
	case e.Status == http.StatusBadRequest:
		return "Give this virtual machine a managed identity (az vm identity assign), or name one of several in identity.managedIdentity.clientId."
	}
	return "The service has no token at the moment: wait a minute and try again; look at the virtual machine's health in Azure."
}
