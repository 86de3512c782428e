package controlplane

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Issuer is somebody besides the cluster whose tokens the API server takes.
type Issuer struct {
	// URL is the issuer as tokens name it; CA is that of its server, PEM.
	URL, CA string
	// Audience is for whom a token must be, Claim which of its claims is the user.
	Audience, Claim string
}

func (p *Plane) authentication() string { return filepath.Join(p.Dir, "authentication.yaml") }

// Trust has the API server take tokens of these issuers and of no others; it reads the
// file again by itself.
func (p *Plane) Trust(issuers ...Issuer) error {
	jwt := []any{}
	for _, i := range issuers {
		jwt = append(jwt, map[string]any{
			"issuer":        map[string]any{"url": i.URL, "certificateAuthority": i.CA, "audiences": []string{i.Audience}},
			"claimMappings": map[string]any{"username": map[string]any{"claim": i.Claim, "prefix": ""}},
		})
	}
	b, err := yaml.Marshal(map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt})
	if err != nil {
		return fmt.Errorf("write authentication: %w", err)
	}
	next := p.authentication() + ".new"
	if err := os.WriteFile(next, b, 0o600); err != nil {
		return fmt.Errorf("write authentication: %w", err)
	}
	if err := os.Rename(next, p.authentication()); err != nil {
		return fmt.Errorf("write authentication: %w", err)
	}
	return nil
}
