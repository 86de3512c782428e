package node

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/apicheck"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/resolver"
	"github.com/berth-dev/berth/internal/contract/value"
	"github.com/berth-dev/berth/internal/desired"
)

// How long the API server may take to answer, and to issue a certificate.
const (
	serverBudget      = 5 * time.Minute
	certificateBudget = 2 * time.Minute
)

// kubeletDefaults are what the document says of kubelet in words of its own, and
// what a kubelet needs that is not open to everybody.
func (t *translation) kubeletDefaults() map[string]any {
	n, net, told := t.config.Node, t.config.Networking, t.told()
	out := map[string]any{
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": kubelet.CAFile},
		},
		"authorization":      map[string]any{"mode": "Webhook"},
		"cgroupDriver":       cmp.Or(told.CgroupDriver, systemdDriver),
		"clusterDomain":      net.ClusterDomain,
		"maxPods":            n.MaxPods,
		"readOnlyPort":       0,
		"rotateCertificates": !t.config.Identity.Direct,
		"staticPodPath":      kubelet.ManifestDir,
	}
	if !t.doc.saysDomain && told.Domain != "" {
		out["clusterDomain"] = told.Domain
	}
	if dns := t.clusterDNS(); len(dns) > 0 {
		out["clusterDNS"] = dns
	}
	if t.facts.Resolved { // the machine's own list names a server that pods can't reach
		out["resolvConf"] = resolver.List
	}
	for name, by := range map[string]map[string]string{"kubeReserved": n.KubeReserved, "systemReserved": n.SystemReserved} {
		if len(by) > 0 {
			out[name] = object(by)
		}
	}
	return out
}

// object is a map as JSON has it, so that merge finds its members.
func object(by map[string]string) map[string]any {
	out := map[string]any{}
	for name, v := range by {
		out[name] = v
	}
	return out
}

// told is what the cluster tells its kubelets.
func (t *translation) told() component.ClusterSettings {
	if t.facts.Cluster == nil {
		return component.ClusterSettings{}
	}
	return *t.facts.Cluster
}

// clusterDNS are the name servers that the document names, else those that the cluster
// does.
func (t *translation) clusterDNS() []string {
	if dns := t.config.Networking.ClusterDNS; len(dns) > 0 {
		return dns
	}
	return t.told().DNS
}

// kubeletConfig is the configuration: what the document hands on goes before the
// rest, member by member. It is never read into a Go type of some Kubernetes
// version: what that type does not know would be lost.
func (t *translation) kubeletConfig() (map[string]any, error) {
	given, err := t.handedOn()
	if err != nil {
		return nil, err
	}
	return merge(t.kubeletDefaults(), given), nil
}

func (t *translation) handedOn() (map[string]any, error) {
	given := map[string]any{}
	if len(t.config.Node.KubeletConfig) == 0 {
		return given, nil
	}
	dec := json.NewDecoder(bytes.NewReader(t.config.Node.KubeletConfig))
	dec.UseNumber()
	if err := dec.Decode(&given); err != nil {
		return nil, fmt.Errorf("node.kubeletConfig: %w", err)
	}
	return given, nil
}

// given says whether the handed-on configuration has a member.
func (t *translation) given(name string) bool {
	given, err := t.handedOn()
	return err == nil && given[name] != nil
}

// merge puts the members of over into those of base; a null takes a member away.
func merge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	for name, v := range over {
		inner, isMap := v.(map[string]any)
		below, has := out[name].(map[string]any)
		switch {
		case v == nil:
			delete(out, name)
		case isMap && has:
			out[name] = merge(below, inner)
		default:
			out[name] = v
		}
	}
	return out
}

// systemdCgroup: kubelet and containerd must agree.
func (t *translation) systemdCgroup() (bool, error) {
	config, err := t.kubeletConfig()
	return config["cgroupDriver"] == systemdDriver, err
}

// kubelet is the last part: it comes after everything else.
func (t *translation) kubelet() error {
	t.checkNodeName()
	s, err := t.kubeletSettings()
	if err != nil || len(t.errs) > 0 {
		return err
	}
	rs, err := kubelet.Resources(s)
	if err != nil {
		return err
	}
	t.blameIdentity(rs)
	t.add(nodePath, rs...)
	return t.podNetwork(rs)
}

// checkNodeName looks at what the machine gives where the document names no Node.
func (t *translation) checkNodeName() {
	if name := t.nodeName(); name != "" && value.NodeName(name) != "" {
		t.errs = append(t.errs, invalid(nodePath.Child("name"), value.HostName(name)))
	}
}

func (t *translation) kubeletSettings() (kubelet.Settings, error) {
	s := kubelet.Settings{
		Version: bare(t.config.Components.Kubernetes.Version), Flags: t.flags(), Labels: t.labels(),
		Hostname: t.facts.Hostname, Triggers: t.proxyFiles(),
	}
	config, err := t.kubeletConfig()
	if err != nil {
		return s, err
	}
	if s.Config, err = json.Marshal(config); err != nil {
		return s, err
	}
	if s.SystemdCgroup, err = t.systemdCgroup(); err != nil {
		return s, err
	}
	host, port, _ := serverOf(t.config.Cluster.Server)
	check := apicheck.At(host, port, string(t.ca), serverBudget)
	after := t.add(clusterPath.Child("server"), check)
	s.Cluster = &kubelet.Cluster{Server: server(t.config), CA: t.ca, Credential: t.credential(after)}
	check.Unless, s.After = s.CredentialID(), t.node
	return s, nil
}

func (t *translation) flags() map[string]string {
	out := map[string]string{}
	if t.config.Node.Name != "" {
		out["--hostname-override"] = t.config.Node.Name
	}
	if ip := t.config.Node.NodeIP; ip != "" { // as a flag of the document, which kubelet of any version has
		out["--node-ip"] = ip
	}
	var taints []string
	for _, taint := range t.config.Node.Taints {
		taints = append(taints, desired.Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)}.String())
	}
	if len(taints) > 0 {
		out["--register-with-taints"] = strings.Join(taints, ",")
	}
	return out
}

// unmanaged keeps Azure's cloud controller from deleting a Node of which it knows no
// virtual machine.
const unmanaged = "kubernetes.azure.com/managed"

// managedDomains are those of the API servers of AKS, by cloud.
var managedDomains = []string{".azmk8s.io", ".azmk8s.us", ".azmk8s.cn"}

// onAKS says whether a cluster is one of AKS, by its resource id or its server's name.
func onAKS(c *v1alpha1.Cluster) bool {
	host, _, _ := serverOf(c.Server)
	host = strings.ToLower(host)
	return c.ResourceID != "" || slices.ContainsFunc(managedDomains, func(d string) bool { return strings.HasSuffix(host, d) })
}

func (t *translation) labels() map[string]string {
	out := maps.Clone(t.config.Node.Labels)
	if onAKS(&t.config.Cluster) {
		if out == nil {
			out = map[string]string{}
		}
		out[unmanaged] = "false"
	}
	return out
}

func (t *translation) credential(after []desired.ID) kubelet.Credential {
	c := kubelet.Credential{Timeout: certificateBudget, After: after}
	if b := t.config.Identity.BootstrapToken; b != nil {
		c.TokenFile, c.TokenEnv, c.Token = b.TokenFile, b.TokenEnv, desired.Secret(b.Token)
		return c
	}
	if c.Azure = azureIdentity(t.config); c.Azure != nil {
		c.Program, c.Direct = cmp.Or(t.facts.Program, azureidentity.Program), t.config.Identity.Direct
		return c
	}
	own := t.config.Identity.ClientCertificate
	c.CertFile, c.KeyFile = own.CertFile, own.KeyFile
	t.ownCertificate(own.CertFile)
	return c
}

// ownCertificate refuses one that is not the Node's: read by the API server (the
// Node authorizer and NodeRestriction).
func (t *translation) ownCertificate(path string) {
	at := identityPath.Child("clientCertificate", "certFile")
	text := t.read(at, path)
	if text == nil {
		return
	}
	cert, err := firstCertificate(text)
	switch user := "system:node:" + t.nodeName(); {
	case err != nil:
		t.errs = append(t.errs, invalid(at, path+": "+err.Error()))
	case cert.Subject.CommonName != user || !slices.Contains(cert.Subject.Organization, "system:nodes"):
		t.errs = append(t.errs, invalid(at, fmt.Sprintf("%s is of %s in the groups %q: expected %s in system:nodes",
			path, cert.Subject.CommonName, cert.Subject.Organization, user)))
	}
}

func firstCertificate(text []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, fmt.Errorf("expected PEM with a certificate")
}

// blameIdentity: what is wrong with a certificate that was asked for is, for whoever
// wrote the document, the token.
func (t *translation) blameIdentity(rs []desired.Resource) {
	for _, r := range rs {
		if c, ok := r.(*desired.ClientCertificate); ok {
			c.Field = identityPath.Child(identityName(t.config)).String()
		}
	}
}

// podNetwork is what containerd makes of the template for the Node that kubelet
// registers.
func (t *translation) podNetwork(rs []desired.Resource) error {
	for _, r := range rs {
		n, ok := r.(*desired.NodeObject)
		if !ok || !t.templated() {
			continue
		}
		made, err := cni.KubenetMade(true, kubelet.Unit, n.Name, n.Kubeconfig)
		if err != nil {
			return err
		}
		t.add(networkPath.Child("mode"), made)
	}
	return nil
}
