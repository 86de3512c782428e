package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// assertionType is that of a signed proof instead of a secret (RFC 7523).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// applicationToken asks Microsoft Entra ID for a token of an application. The secret
// is read now, so that one that was changed serves.
//
// Source: learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow.
func (s *Source) applicationToken(ctx context.Context, a *desired.AzureIdentity, resource string) (string, error) {
	endpoint := strings.TrimSuffix(a.Authority, "/") + "/" + a.TenantID + "/oauth2/v2.0/token"
	during := "ask " + endpoint + " for a token"
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {a.ClientID}, "scope": {resource + "/.default"}}
	if err := s.prove(form, a, endpoint); err != nil {
		return "", err
	}
	c, err := s.endpoints.outward(s.via)
	if err != nil {
		return "", failed(during, "Check proxy and trust.", err)
	}
	defer c.CloseIdleConnections()
	got, err := s.patiently(ctx, c, commonPatience, func() (*http.Request, error) {
		req, err := http.NewRequest(http.MethodPost, endpoint, strings.NewReader(form.Encode()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return req, err
	})
	if err != nil {
		return "", failed(during, applicationRemedy(err), err)
	}
	token, err := got.accessToken()
	if err != nil {
		return "", failed(during, applicationRemedy(err), err)
	}
	return token, nil
}

// Lacks says why an identity can't prove itself: the secret or the certificate that a
// service principal names is not here. It asks no server.
func (s *Source) Lacks(a *desired.AzureIdentity) error {
	if a.Kind != desired.AzureServicePrincipal {
		return nil
	}
	return s.prove(url.Values{}, a, a.Authority)
}

// prove adds the secret, or an assertion that the certificate's key signs.
func (s *Source) prove(form url.Values, a *desired.AzureIdentity, endpoint string) error {
	if err := s.addProof(form, a, endpoint); err != nil {
		return failed("read what the service principal proves itself with", "Check identity.servicePrincipal: the file or variable that it names, and who may read it.", err)
	}
	return nil
}

func (s *Source) addProof(form url.Values, a *desired.AzureIdentity, endpoint string) error {
	if a.ClientCertificateFile != "" {
		text, err := s.host.ReadFile(a.ClientCertificateFile)
		if err != nil {
			return err
		}
		signed, err := assertion(text, a.ClientID, endpoint, s.host.Now())
		if err != nil {
			return fmt.Errorf("%s: %w", a.ClientCertificateFile, err)
		}
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", signed)
		return nil
	}
	secret, err := s.secret(a)
	if err != nil {
		return err
	}
	form.Set("client_secret", secret)
	return nil
}

func (s *Source) secret(a *desired.AzureIdentity) (string, error) {
	text, from := a.ClientSecret.Reveal(), "the identity"
	switch {
	case a.ClientSecretFile != "":
		from = a.ClientSecretFile
		b, err := s.host.ReadFile(a.ClientSecretFile)
		if err != nil {
			return "", err
		}
		text = string(b)
	case a.ClientSecretEnv != "":
		from, text = "the variable "+a.ClientSecretEnv, os.Getenv(a.ClientSecretEnv)
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errors.New(from + " holds no secret")
	}
	return text, nil
}

// applicationRemedy: Entra's own numbers say it best.
//
// Source: learn.microsoft.com/entra/identity-platform/reference-error-codes.
func applicationRemedy(err error) string {
	e, ok := errors.AsType[*StatusError](err)
	if !ok {
		return "Check that Microsoft Entra ID is reachable from this machine: DNS, firewall, proxy (HTTPS_PROXY)."
	}
	if serverBusy(e.Status) {
		return "Microsoft Entra ID is busy: try again in some minutes."
	}
	for number, remedy := range map[string]string{
		"AADSTS7000215": "The secret is not that of the application: put the value of the secret, not its id, into the file that identity.servicePrincipal names.",
		"AADSTS7000222": "The secret has expired: make a new one (az ad app credential reset) and put it into the file that identity.servicePrincipal names.",
		"AADSTS700016":  "The application is not known in this tenant: check identity.servicePrincipal.clientId and tenantId.",
		"AADSTS90002":   "The tenant is not known: check identity.servicePrincipal.tenantId, and azure.authority for a cloud of its own.",
		"AADSTS700027":  "The certificate is not registered for the application: az ad app credential reset --cert.",
		"AADSTS700024":  "The proof is outside its time: check this machine's clock (timedatectl).",
	} {
		if strings.Contains(e.Text, number+":") {
			return remedy
		}
	}
	return "Check identity.servicePrincipal: tenantId, clientId, and the secret or certificate."
}
