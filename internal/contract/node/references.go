package node

import (
	"slices"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/kubelet"
)

// References are what the facts must have besides the machine's own. Files with
// secrets are not among them.
func (d *Document) References() component.References {
	var r component.References
	c := d.Config
	if f := c.Cluster.CAFile; f != "" {
		r.Files = append(r.Files, f)
	}
	if i := c.Identity.ClientCertificate; i != nil {
		r.Files = append(r.Files, i.CertFile)
	}
	r.Files = append(r.Files, c.Trust.CAFiles...)
	slices.Sort(r.Files)
	r.Files = slices.Compact(r.Files)
	if b := c.Identity.BootstrapToken; b != nil && c.Cluster.CACertHash != "" {
		r.Discovery = &component.Discovery{Server: server(c), Pin: c.Cluster.CACertHash, Known: kubelet.CAFile,
			TokenFile: b.TokenFile, TokenEnv: b.TokenEnv, Token: string(b.Token)}
	}
	return r
}
