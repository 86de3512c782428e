package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/berth-dev/berth/internal/exitcode"
)

// The agent of Azure Arc serves tokens on this machine alone.
const (
	arcEndpoint = "http://127.0.0.1:40342" + tokenPath
	arcVersion  = "2020-06-01"
	// arcVariable is where the agent tells its endpoint to all services.
	arcVariable = "IDENTITY_ENDPOINT"
)

const arcDuring = "ask the agent of Azure Arc for a token"

const arcRemedy = "Check that the Azure Connected Machine agent runs and is connected: systemctl status himdsd, azcmagent show."

// arcToken asks the agent of Azure Arc for a token of the machine's identity. The
// agent first names a file that only privileged users can read, and gives the token
// to whoever shows its content.
//
// Source: learn.microsoft.com/azure/azure-arc/servers/managed-identity-authentication.
func (s *Source) arcToken(ctx context.Context, resource string) (string, error) {
	endpoint, err := loopback(s.endpoints.arc)
	if err != nil {
		return "", failed(arcDuring, "Correct the variable "+arcVariable+", or remove it: the agent answers at "+arcEndpoint+".", err)
	}
	c := direct(loopbackOnly)
	defer c.CloseIdleConnections()
	values := url.Values{"api-version": {arcVersion}, "resource": {resource}}
	got, err := s.again(ctx, commonPatience, func() (answer, error) { return s.arcExchange(ctx, c, endpoint, values) })
	if _, coded := errors.AsType[*exitcode.Error](err); coded {
		return "", err
	}
	if err != nil {
		return "", failed(arcDuring, arcRemedy, err)
	}
	token, err := got.accessToken()
	if err != nil {
		return "", failed(arcDuring, arcRemedy, err)
	}
	return token, nil
}

// arcExchange is one challenge and the answer to what it asks for. A file may be good for
// one request alone: who is busy is asked for another.
func (s *Source) arcExchange(ctx context.Context, c *http.Client, endpoint string, values url.Values) (answer, error) {
	req, err := metadataRequest(endpoint, values)
	if err != nil {
		return answer{}, failed(arcDuring, arcRemedy, err)
	}
	first, err := ask(c, req.WithContext(ctx))
	if err != nil || serverBusy(first.status) {
		return first, err
	}
	if first.status != http.StatusUnauthorized {
		return first, failed(arcDuring, arcRemedy, fmt.Errorf("it must answer 401 and name a file: %w", first.refusal()))
	}
	key, err := s.challengeKey(first.header)
	if err != nil {
		return first, failed(arcDuring, "Run it as root or in the group himds; look at the agent: azcmagent check, azcmagent show.", err)
	}
	req = req.Clone(ctx)
	req.Header.Set("Authorization", "Basic "+key)
	return ask(c, req)
}

// loopback takes the endpoint of the agent: plain http to this machine. A name is
// resolved by nobody.
func loopback(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("the endpoint is no URL: %w", err)
	}
	if u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != tokenPath {
		return "", fmt.Errorf("the endpoint %q is not http://127.0.0.1:PORT%s", endpoint, tokenPath)
	}
	if strings.EqualFold(u.Hostname(), "localhost") {
		u.Host = strings.TrimSuffix("127.0.0.1:"+u.Port(), ":")
		return u.String(), nil
	}
	if at, err := netip.ParseAddr(u.Hostname()); err != nil || !at.IsLoopback() {
		return "", fmt.Errorf("the endpoint %q: %w", endpoint, errNotLoopback)
	}
	return u.String(), nil
}

// challengePath is the file that a challenge names.
func challengePath(h http.Header) (string, error) {
	for _, value := range h.Values("Www-Authenticate") {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
		if !strings.EqualFold(scheme, "Basic") {
			continue
		}
		name, p, ok := strings.Cut(strings.TrimSpace(rest), "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(name), "realm") {
			continue
		}
		return strings.Trim(strings.TrimSpace(p), `"`), nil
	}
	return "", errors.New(`its answer has no header "Www-Authenticate: Basic realm=FILE"`)
}
