package aks

import (
	"slices"

	"github.com/berth-dev/berth/internal/desired"
)

// egress makes the contract's proxy and CAs the way of every download.
func (t *translation) egress() error {
	p := t.cfg.GetHttpProxyConfig()
	via := &desired.Egress{HTTPProxy: desired.Secret(p.GetHttpProxy()), HTTPSProxy: desired.Secret(p.GetHttpsProxy()), NoProxy: p.GetNoProxyEntries()}
	for _, text := range slices.Concat(t.cfg.GetCustomCaCerts(), []string{p.GetProxyTrustedCa()}) {
		ca, err := unbase64("a CA", text)
		if err != nil {
			return err
		}
		if len(ca) > 0 {
			via.CAs = append(via.CAs, string(ca))
		}
	}
	if via.HTTPProxy == "" && via.HTTPSProxy == "" && len(via.CAs) == 0 {
		return nil
	}
	for _, r := range t.state.Resources {
		if a, ok := r.(*desired.Artifact); ok && len(a.URLs) > 0 {
			a.Via = via
		}
	}
	return nil
}
