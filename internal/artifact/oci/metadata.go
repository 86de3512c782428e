package oci

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"
)

// MetadataService stands for a registry in errors of Azure's instance metadata
// service.
const MetadataService = "instance metadata service"

const (
	metadataAddress = "http://169.254.169.254"
	identityPath    = "/metadata/identity/oauth2/token"
	identityVersion = "2018-02-01"
)

// metadataClient reaches the instance metadata service, which answers on the
// machine's own network only: past all proxies, and it leads nowhere else. It
// gives up before whoever reads from a registry does: the registry may let this
// machine in without a name.
var metadataClient = &http.Client{
	Transport: &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		ResponseHeaderTimeout: 10 * time.Second,
		DisableKeepAlives:     true,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// identityToken asks for a token of the machine's managed identity, for use at a
// registry.
//
// Source: learn.microsoft.com/entra/identity/managed-identities-azure-resources,
// "How to use managed identities on an Azure VM to acquire an access token".
func (a *ACR) identityToken(ctx context.Context, registry, resource string) (string, error) {
	address := a.Metadata
	if address == "" {
		address = metadataAddress
	}
	values := url.Values{"api-version": {identityVersion}, "resource": {resource}}
	if a.ClientID != "" {
		values.Set("client_id", a.ClientID)
	}
	s := a.asks(registry, Subject{Registry: MetadataService, What: "identity token for " + resource})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+identityPath+"?"+values.Encode(), http.NoBody)
	if err != nil {
		return "", &RequestError{s, err}
	}
	req.Header.Set("Metadata", "true")
	return ask(metadataClient, s, req, "access_token")
}
