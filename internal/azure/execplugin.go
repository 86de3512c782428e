package azure

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// ExecPlugin answers as a credential plugin of client-go (client.authentication.k8s.io/v1)
// with a token of the machine's identity. Host, Identity and Getenv are required.
type ExecPlugin struct {
	Host host.Host
	// Identity is the file that says who the machine is.
	Identity string
	// Server is the Entra application that the caller wants the token for; "" is that of
	// the identity. There is no token for another.
	Server string
	// Environment: variables may name the identity instead.
	Environment bool
	// Keep: tokens may be kept, as root may.
	Keep bool
	// Warn is told of what stood in the way of a token that was kept.
	Warn   func(error)
	Getenv func(string) string
}

// Credential is what the plugin prints.
func (p ExecPlugin) Credential(ctx context.Context) ([]byte, error) {
	version, err := ExecVersion(p.Getenv(ExecInfo))
	if err != nil {
		return nil, err
	}
	identity, err := p.identity()
	if err != nil {
		return nil, err
	}
	if p.Server != "" && !strings.EqualFold(p.Server, identity.ServerID) {
		return nil, &exitcode.Error{Err: fmt.Errorf("a token for %s is asked for, and the cluster of this machine is %s", p.Server, identity.ServerID),
			Remedy: "Leave --server-id out: this machine has tokens for its own cluster's API server only."}
	}
	ctx, cancel := context.WithTimeout(ctx, Budget)
	defer cancel()
	source, err := NewRecorded(p.Host, &identity)
	if err != nil {
		return nil, err
	}
	credential, err := p.credential(ctx, source, &identity)
	if err != nil {
		return nil, err
	}
	return credential.ExecCredential(version)
}

// credential is one of those that are kept, where the caller may keep any.
func (p ExecPlugin) credential(ctx context.Context, s *Source, a *desired.AzureIdentity) (Credential, error) {
	if !p.Keep {
		t, err := s.ForServer(ctx, a)
		return Credential{Token: t, Renew: t.Expires}, err
	}
	c, err := s.Cached(ctx, a)
	if c.Trouble != nil {
		p.Warn(c.Trouble)
	}
	return c, err
}

// identity is who the machine is.
func (p ExecPlugin) identity() (desired.AzureIdentity, error) {
	if p.Environment {
		if a, ok, err := Published(p.Host, p.Getenv); ok || err != nil {
			return a, err
		}
	}
	instead := "a file of your own with --identity"
	if p.Environment {
		instead = "an identity of your own with AAD_LOGIN_METHOD"
	}
	return Recorded(p.Host, p.Identity, instead)
}
