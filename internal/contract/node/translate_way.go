package node

import (
	"fmt"

	"github.com/berth-dev/berth/internal/component/trust"
	"github.com/berth-dev/berth/internal/desired"
)

// trust comes before the runtime pulls anything.
func (t *translation) trust() error {
	bundles := t.bundles()
	if len(t.errs) > 0 {
		return nil
	}
	rs, err := trust.Resources("node-ca", bundles)
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	t.runtime = append(t.runtime, t.add(trustPath, rs...)...)
	return nil
}

// egress makes the document's proxy and CAs the way of every download.
func (t *translation) egress() error {
	via := desired.Egress{HTTPProxy: desired.Secret(t.config.Proxy.HTTP), HTTPSProxy: desired.Secret(t.config.Proxy.HTTPS)}
	if len(t.proxyFiles()) > 0 {
		via.NoProxy = t.direct()
	}
	bundles := t.bundles()
	for _, b := range bundles {
		via.CAs = append(via.CAs, string(b))
	}
	if len(via.CAs) == 0 && len(t.proxyFiles()) == 0 {
		return nil
	}
	for _, r := range t.state.Resources {
		switch r := r.(type) {
		case *desired.Artifact:
			r.Via = &via
		case *desired.ClientCertificate:
			if r.Azure != nil {
				r.Via = &via
			}
		}
	}
	return nil
}
