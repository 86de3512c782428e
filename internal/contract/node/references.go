package node

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
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
	r.Arc = arcRegistration(c)
	r.Way, r.WayCAFiles = wayOut(c), c.Trust.CAFiles
	if asksAzure(c) {
		r.Azure = &component.AzureCluster{ResourceID: c.Cluster.ResourceID, Manager: cmp.Or(c.Azure.ResourceManager, resourceManager), Identity: azureIdentity(c)}
		r.Azure.Via, r.Azure.CAFiles = wayOut(c), c.Trust.CAFiles
	}
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
	if asksAzure(c) { // its answer says the server
		q.Server = ""
	}
	if b := c.Identity.BootstrapToken; b != nil {
		q.TokenFile, q.TokenEnv, q.Token = b.TokenFile, b.TokenEnv, string(b.Token)
	}
	return q
}

// wayOut is the document's, as far as it is known before the machine is.
func wayOut(c *v1alpha1.NodeConfig) *desired.Egress {
	p := c.Proxy
	if p.HTTP == "" && p.HTTPS == "" && len(c.Trust.CAs)+len(c.Trust.CAFiles) == 0 {
		return nil
	}
	return &desired.Egress{HTTPProxy: desired.Secret(p.HTTP), HTTPSProxy: desired.Secret(p.HTTPS), NoProxy: p.NoProxy, CAs: slices.Clone(c.Trust.CAs)}
}
