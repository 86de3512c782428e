package azure

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/berth-dev/berth/internal/artifact/remote"
)

// registryMetadata reaches the instance metadata service, which answers on the
// machine's own network only: past all proxies, and it leads nowhere else. It
// gives up before whoever reads from a registry does: the registry may let this
// machine in without a name.
var registryMetadata = &http.Client{
	Transport: &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		ResponseHeaderTimeout: 10 * time.Second,
		DisableKeepAlives:     true,
	},
	CheckRedirect: unguided,
}

// identityToken asks for a token of the machine's managed identity, for use at a
// registry.
//
// Source: learn.microsoft.com/entra/identity/managed-identities-azure-resources,
// "How to use managed identities on an Azure VM to acquire an access token".
func (a *ACR) identityToken(ctx context.Context, registry, resource string) (string, error) {
	values := url.Values{"api-version": {imdsVersion}, "resource": {resource}}
	if a.ClientID != "" {
		values.Set("client_id", a.ClientID)
	}
	s := a.asks(registry, remote.Subject{Registry: remote.MetadataService, What: "identity token for " + resource})
	req, err := metadataRequest(cmp.Or(a.Metadata, imdsAddress)+tokenPath, values)
	if err != nil {
		return "", &remote.RequestError{Subject: s, Err: err}
	}
	return remote.Token(registryMetadata, s, req.WithContext(ctx), "access_token")
}
