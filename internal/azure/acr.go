package azure

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/desired"
)

// acrUser is the name under which Azure Container Registry takes its refresh
// tokens, which are also passwords.
const acrUser = "00000000-0000-0000-0000-000000000000"

// acrSuffixes end the names of Azure's registries in its public clouds.
var acrSuffixes = []string{".azurecr.io", ".azurecr.cn", ".azurecr.us"}

// acrResources are for what tokens are asked, in this order: the one that is
// good for registries alone first, since many registries take both.
var acrResources = []string{"https://containerregistry.azure.net", "https://management.azure.com/"}

// ACR gets credentials of Azure Container Registry for a managed identity of
// this machine. Its Credential is made for remote.Client.Credentials.
//
// Source: learn.microsoft.com/azure/container-registry, "Authenticate with a
// managed identity"; the /oauth2/exchange API of the registry.
type ACR struct {
	// HTTP reaches the registry; nil is http.DefaultClient. The instance metadata
	// service is never asked through a proxy, nor by this client.
	HTTP *http.Client
	// ClientID chooses one of several user-assigned identities; "" is the
	// machine's only one.
	ClientID string
	// TenantID is the identity's tenant; "" leaves it to the registry.
	TenantID string
	// Suffixes end the names of registries that are sent the identity's token, in
	// lower case, with their dot, besides those of Azure's public clouds. No other
	// registry ever sees it: it may open more than registries.
	Suffixes []string
	// Resources are for what tokens are asked, one after the other if the registry
	// takes none of the one before; nil suits the public cloud.
	Resources []string
	// Metadata is the address of the instance metadata service; "" is Azure's.
	Metadata string

	flight singleflight.Group
	mu     sync.Mutex
	known  map[string]acrToken
	// asked is who was asked last on the way to a token, by registry.
	asked map[string]remote.Subject
}

// RegistryIdentity tells registries over an HTTP client who the machine is: Azure's own,
// where they want to know. A nil identity is the machine's only one.
func RegistryIdentity(client *http.Client, as *desired.ManagedIdentity) remote.Credentials {
	a := &ACR{HTTP: client}
	if as != nil {
		a.ClientID, a.TenantID, a.Suffixes = as.ClientID, as.TenantID, as.Suffixes
	}
	return a.Credential
}

type acrToken struct {
	credential remote.Credential
	until      time.Time
}

// Credential is the registry's refresh token for the identity, or nobody if the
// registry is none of Azure's. Tokens are kept until shortly before they end.
//
// Errors: *remote.StatusError, *remote.RequestError.
func (a *ACR) Credential(ctx context.Context, registry string) (remote.Credential, error) {
	if !a.trusts(registry) {
		return remote.Credential{}, nil
	}
	if c, ok := a.kept(registry); ok {
		return c, nil
	}
	// Whoever asks first must not, by giving up, fail the others.
	shared := context.WithoutCancel(ctx)
	got := a.flight.DoChan(registry, func() (any, error) { return a.renew(shared, registry) })
	select {
	case r := <-got:
		c, _ := r.Val.(remote.Credential)
		return c, r.Err
	case <-ctx.Done():
		return remote.Credential{}, &remote.RequestError{Subject: a.lastAsked(registry), Err: context.Cause(ctx)}
	}
}

// asks notes who is asked now, for those who give up waiting.
func (a *ACR) asks(registry string, s remote.Subject) remote.Subject {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked == nil {
		a.asked = map[string]remote.Subject{}
	}
	a.asked[registry] = s
	return s
}

func (a *ACR) lastAsked(registry string) remote.Subject {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, ok := a.asked[registry]; ok {
		return s
	}
	return remote.Subject{Registry: registry, What: tokenExchange}
}

func (a *ACR) kept(registry string) (remote.Credential, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.known[registry]
	return t.credential, ok && time.Now().Before(t.until)
}

// acrPatience bounds the way to a token.
const acrPatience = time.Minute

func (a *ACR) renew(ctx context.Context, registry string) (remote.Credential, error) {
	ctx, cancel := context.WithTimeout(ctx, acrPatience)
	defer cancel()
	token, err := a.token(ctx, registry)
	if err != nil {
		return remote.Credential{}, err
	}
	c := remote.Credential{Username: acrUser, RefreshToken: desired.Secret(token)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[string]acrToken{}
	}
	a.known[registry] = acrToken{c, goodUntil(token, time.Now())}
	return c, nil
}

func (a *ACR) trusts(registry string) bool {
	return slices.ContainsFunc(slices.Concat(acrSuffixes, a.Suffixes), func(s string) bool {
		return strings.HasPrefix(s, ".") && strings.HasSuffix(strings.ToLower(registry), s)
	})
}

// token tries the resources in turn; only a refusal leads to the next one.
func (a *ACR) token(ctx context.Context, registry string) (string, error) {
	resources := a.Resources
	if len(resources) == 0 {
		resources = acrResources
	}
	var last error
	for _, resource := range resources {
		token, err := a.identityToken(ctx, registry, resource)
		if err == nil {
			token, err = a.exchange(ctx, registry, token)
		}
		if err == nil {
			return token, nil
		}
		refused, ok := errors.AsType[*remote.StatusError](err)
		if last != nil {
			err = fmt.Errorf("%w (and before: %v)", err, last) //nolint:errorlint // the last one decides what is done
		}
		last = err
		if !ok || refused.Temporary() {
			break
		}
	}
	return "", last
}

const tokenExchange = "token exchange"

// exchange changes the identity's token into the registry's.
func (a *ACR) exchange(ctx context.Context, registry, token string) (string, error) {
	s := a.asks(registry, remote.Subject{Registry: registry, What: tokenExchange})
	form := url.Values{"grant_type": {"access_token"}, "service": {registry}, "access_token": {token}}
	if a.TenantID != "" {
		form.Set("tenant", a.TenantID)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+registry+"/oauth2/exchange", strings.NewReader(form.Encode()))
	if err != nil {
		return "", &remote.RequestError{Subject: s, Err: err}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{}
	if a.HTTP != nil {
		client = *a.HTTP
	}
	client.CheckRedirect = unguided
	return remote.Token(&client, s, req, "refresh_token")
}

// goodUntil is when a token is to be replaced: five minutes before the end that
// it names itself, or ten minutes from now.
func goodUntil(token string, now time.Time) time.Time {
	parts := strings.Split(token, ".")
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if len(parts) == 3 {
		if plain, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			_ = json.Unmarshal(plain, &claims) // no claims: the default
		}
	}
	if claims.Exp > 0 {
		return time.Unix(claims.Exp, 0).Add(-5 * time.Minute)
	}
	return now.Add(10 * time.Minute)
}
