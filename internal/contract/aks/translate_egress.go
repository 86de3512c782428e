package aks

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/proxy"
	"github.com/berth-dev/berth/internal/component/securebootstrap"
	"github.com/berth-dev/berth/internal/component/streaming"
	"github.com/berth-dev/berth/internal/component/trust"
	"github.com/berth-dev/berth/internal/desired"
)

// proxy makes the contract's proxy that of the machine's programs. Its CA is
// trusted before any of them starts. An image has the CA alone: the address may
// hold a password.
func (t *translation) proxy() error {
	p := t.cfg.GetHttpProxyConfig()
	if err := t.proxyTrust(p.GetProxyTrustedCa()); err != nil || !t.joins() {
		return err
	}
	s, field := t.wayOut(), "http_proxy_config"
	s.Services, s.Apt = t.fetching(), t.facts.Apt
	if privateEgress(t) { // the way to the API server is another one
		field = "private_egress_proxy_address"
	} else {
		s.Services = append(s.Services, t.asking()...)
	}
	ids := t.add(field, proxy.Resources(s)...)
	t.runtime, t.node = append(t.runtime, ids...), append(t.node, ids...)
	return nil
}

// fetching are the units that ask registries.
func (t *translation) fetching() []string {
	units := []string{containerd.Unit}
	if t.cfg.GetEnableArtifactStreaming() {
		units = append(units, streaming.Units()...)
	}
	return units
}

// asking are the units that ask the API server and the cloud.
func (t *translation) asking() []string {
	units := []string{kubelet.Unit}
	if attested(t) && !hasToken(t) {
		units = append(units, securebootstrap.Unit)
	}
	return units
}

// wayOut is the proxy of the document: that of http_proxy_config, else the one of
// private_egress_proxy_address, which is for what is outside.
func (t *translation) wayOut() proxy.Settings {
	p := t.cfg.GetHttpProxyConfig()
	s := proxy.Settings{HTTP: desired.Secret(p.GetHttpProxy()), HTTPS: desired.Secret(p.GetHttpsProxy()), Direct: p.GetNoProxyEntries()}
	if privateEgress(t) {
		address := desired.Secret(t.cfg.GetPrivateEgressProxyAddress())
		s.HTTP, s.HTTPS = address, address
		s.Direct = slices.Concat(s.Direct, inside, []string{t.cfg.GetApiServerConfig().GetApiServerName()})
	}
	return s
}

// inside is what no proxy of the egress knows: this machine, and the services of the
// cloud for it.
var inside = []string{"localhost", "127.0.0.1", "168.63.129.16", "169.254.169.254"}

// privateEgress says whether private_egress_proxy_address is in force.
func privateEgress(t *translation) bool {
	return t.cfg.GetPrivateEgressProxyAddress() != "" && !proxied(t)
}

func (t *translation) proxyTrust(text string) error {
	if text == "" {
		return nil
	}
	ca, err := unbase64("http_proxy_config.proxy_trusted_ca", text)
	if err != nil {
		return err
	}
	rs, err := trust.Resources("aks-proxy-ca", [][]byte{ca})
	if err != nil {
		return fmt.Errorf("http_proxy_config.proxy_trusted_ca: %w", err)
	}
	t.runtime = append(t.runtime, t.add("http_proxy_config.proxy_trusted_ca", rs...)...)
	return nil
}

// proxyFiles are what services read of the proxy when they start.
func (t *translation) proxyFiles() []string {
	if !t.joins() || !proxied(t) && !privateEgress(t) {
		return nil
	}
	return []string{proxy.VariablesFile}
}

// egress makes the contract's proxy, CAs and identity the way of every download.
func (t *translation) egress() error {
	p := t.cfg.GetHttpProxyConfig()
	out := t.wayOut()
	via := desired.Egress{HTTPProxy: out.HTTP, HTTPSProxy: out.HTTPS, NoProxy: out.Direct}
	for _, text := range slices.Concat(t.cfg.GetCustomCaCerts(), []string{p.GetProxyTrustedCa()}) {
		ca, err := unbase64("a CA", text)
		if err != nil {
			return err
		}
		if readable(ca) {
			via.CAs = append(via.CAs, string(ca))
		}
	}
	if inCustomCloud(t) {
		via.CAs = append(via.CAs, readableOf(t.facts.CloudCAs)...)
	}
	plain := len(via.CAs) == 0 && via.HTTPProxy == "" && via.HTTPSProxy == ""
	withIdentity := via
	withIdentity.Identity = t.identity()
	for _, r := range t.state.Resources {
		if c, ok := r.(*desired.ClientCertificate); ok && c.Azure != nil && !plain {
			c.Via = &via
		}
		if c, ok := r.(*desired.Check); ok && len(c.Command) > 0 && !plain {
			c.Via = &via
		}
		urls, at := outside(r)
		switch {
		case len(urls) == 0:
		case withIdentity.Identity != nil && slices.ContainsFunc(urls, inRegistry):
			*at = &withIdentity
		case !plain:
			*at = &via
		}
	}
	return nil
}

// outside is from where a resource is fetched, and the field for its way there.
func outside(r desired.Resource) ([]string, **desired.Egress) {
	switch r := r.(type) {
	case *desired.Artifact:
		return r.URLs, &r.Via
	case *desired.Image:
		if r.Source != "" {
			return []string{r.Source}, &r.Via
		}
	}
	return nil, nil
}

// readable says whether a CA means something to berth's own client. What OpenSSL
// alone reads is for the programs that use it.
func readable(ca []byte) bool { return x509.NewCertPool().AppendCertsFromPEM(ca) }

func readableOf(cas []string) []string {
	return slices.DeleteFunc(slices.Clone(cas), func(ca string) bool { return !readable([]byte(ca)) })
}

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
