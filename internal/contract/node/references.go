package node

import (
	"encoding/json"
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
	r.Settings = d.settingsQuestion()
	return r
}

// settingsQuestion: a document that names the cluster's name servers and domain leaves
// nothing open that is worth a question at each run.
func (d *Document) settingsQuestion() *component.SettingsQuestion {
	c := d.Config
	var given struct {
		ClusterDNS    []string
		ClusterDomain string
	}
	_ = json.Unmarshal(c.Node.KubeletConfig, &given) // of another form it is kubelet's to refuse
	if len(c.Networking.ClusterDNS)+len(given.ClusterDNS) > 0 && (d.saysDomain || given.ClusterDomain != "") {
		return nil
	}
	q := &component.SettingsQuestion{Server: server(c), CA: c.Cluster.CA, CAFile: c.Cluster.CAFile, Kubeconfig: kubelet.Kubeconfig, Known: kubelet.ConfigFile}
	if b := c.Identity.BootstrapToken; b != nil {
		q.TokenFile, q.TokenEnv, q.Token = b.TokenFile, b.TokenEnv, string(b.Token)
	}
	return q
}
