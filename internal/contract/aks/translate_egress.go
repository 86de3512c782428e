package aks

import (
	"crypto/x509"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// egress makes the contract's proxy, CAs and identity the way of every download.
func (t *translation) egress() error {
	p := t.cfg.GetHttpProxyConfig()
	via := desired.Egress{HTTPProxy: desired.Secret(p.GetHttpProxy()), HTTPSProxy: desired.Secret(p.GetHttpsProxy()), NoProxy: p.GetNoProxyEntries()}
	for _, text := range slices.Concat(t.cfg.GetCustomCaCerts(), []string{p.GetProxyTrustedCa()}) {
		ca, err := unbase64("a CA", text)
		if err != nil {
			return err
		}
		if readable(ca) {
			via.CAs = append(via.CAs, string(ca))
		}
	}
	plain := len(via.CAs) == 0 && via.HTTPProxy == "" && via.HTTPSProxy == ""
	withIdentity := via
	withIdentity.Identity = t.identity()
	for _, r := range t.state.Resources {
		a, ok := r.(*desired.Artifact)
		switch {
		case !ok || len(a.URLs) == 0:
		case withIdentity.Identity != nil && slices.ContainsFunc(a.URLs, inRegistry):
			a.Via = &withIdentity
		case !plain:
			a.Via = &via
		}
	}
	return nil
}

// readable says whether a CA means something to berth's own client. What OpenSSL
// alone reads is for the programs that use it.
func readable(ca []byte) bool { return x509.NewCertPool().AppendCertsFromPEM(ca) }

func inRegistry(url string) bool { return strings.HasPrefix(url, "oci://") }

// registrySuffix is what the registries of another cloud end with.
func (t *translation) registrySuffix() string {
	return strings.ToLower(strings.Trim(t.cfg.GetCustomCloudConfig().GetContainerRegistryDnsSuffix(), "."))
}

// identity is kubelet's, as which the published scripts log in to the registry of
// a cluster without a way out.
func (t *translation) identity() *desired.ManagedIdentity {
	auth := t.cfg.GetAuthConfig()
	id := desired.ManagedIdentity{ClientID: auth.GetAssignedIdentityId()}
	if suffix := t.registrySuffix(); suffix != "" {
		id.Suffixes = []string{"." + suffix}
	}
	if id.ClientID == "" && id.Suffixes == nil {
		return nil
	}
	id.TenantID = auth.GetTenantId()
	return &id
}
