package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Source gives the tokens of a machine's identity. Use New.
type Source struct {
	host      Host
	endpoints endpoints
	via       *desired.Egress
}

// Host is what tokens need of a machine.
type Host interface {
	host.FS
	host.Clock
	host.Locker
	host.Runner
}

// endpoints are where the services are.
type endpoints struct {
	instance, arc string
	// outward is a client for the Internet, by a way out; nil is the machine's own.
	outward func(*desired.Egress) (*http.Client, error)
	// pause is the first one between two tries.
	pause time.Duration
}

// New is the source of a machine.
func New(h Host) *Source {
	return &Source{host: h, endpoints: endpoints{imdsAddress, cmp.Or(os.Getenv(arcVariable), arcEndpoint), outward, firstPause}}
}

// ForServer asks for a token for the server of an identity. It is nobody else's, of
// the tenant that the identity names, and in force.
func (s *Source) ForServer(ctx context.Context, a *desired.AzureIdentity) (Token, error) {
	if err := a.Validate(); err != nil {
		return Token{}, fmt.Errorf("identity: %w", err)
	}
	return s.obtain(ctx, a, a.ServerID)
}

// Bootstrap is the text of a token for the server of an identity, asked for by a way
// out of the machine; nil is the machine's own.
func (s *Source) Bootstrap(ctx context.Context, a *desired.AzureIdentity, via *desired.Egress) (desired.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, Budget)
	defer cancel()
	t, err := s.By(via).ForServer(ctx, a)
	return t.Text, err
}

// By is a source that reaches the Internet by a way out; nil is the machine's own.
func (s *Source) By(via *desired.Egress) *Source {
	out := *s
	out.via = via
	return &out
}

func (s *Source) obtain(ctx context.Context, a *desired.AzureIdentity, resource string) (Token, error) {
	text, err := s.ask(ctx, a, resource)
	if err != nil {
		return Token{}, err
	}
	t, err := check(text, resource, a.TenantID, s.host.Now())
	if err != nil {
		return Token{}, failed("check the token of the identity ("+string(a.Kind)+")", checkRemedy, err)
	}
	return t, nil
}

const checkRemedy = "Check the tenant in identity and azure.serverId, and this machine's clock (timedatectl)."

func (s *Source) ask(ctx context.Context, a *desired.AzureIdentity, resource string) (string, error) {
	switch a.Kind {
	case desired.AzureManagedIdentity:
		return s.instanceToken(ctx, resource, a.ClientID)
	case desired.AzureArc:
		return s.arcToken(ctx, resource)
	case desired.AzureServicePrincipal:
		return s.applicationToken(ctx, a, resource)
	case desired.AzureCLI:
		return s.cliToken(ctx, resource, a.TenantID)
	}
	return "", errors.New("an identity of kind " + string(a.Kind) + " has no tokens")
}

// Budget is how long obtaining a token may take: the metadata service is back within 70
// seconds where it is updated.
const Budget = 90 * time.Second
