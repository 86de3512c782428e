package node

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/proxy"
	"github.com/berth-dev/berth/internal/desired"
)

// What a machine gets that has no such program, where the document names no version.
const (
	containerdVersion = "2.2.9"
	runcVersion       = "1.4.3"
	cniVersion        = "1.9.1"
)

const (
	containerdPath = "/usr/local/bin/containerd"
	runcPath       = "/usr/local/sbin/runc"
)

// projectURL is where a project publishes a program.
func projectURL(program, version, arch string) string {
	return map[string]string{
		"kubernetes": "https://dl.k8s.io/v" + version + "/kubernetes-node-linux-" + arch + ".tar.gz",
		"containerd": "https://github.com/containerd/containerd/releases/download/v" + version + "/containerd-" + version + "-linux-" + arch + ".tar.gz",
		"runc":       "https://github.com/opencontainers/runc/releases/download/v" + version + "/runc." + arch,
		"cni":        "https://github.com/containernetworking/plugins/releases/download/v" + version + "/cni-plugins-linux-" + arch + "-v" + version + ".tgz",
	}[program]
}

func bare(version string) string { return strings.TrimPrefix(version, "v") }

// source is where a program comes from if the machine does not have it in the
// version that is wanted: "" takes any.
func (t *translation) source(program string, c v1alpha1.Component, otherwise string) binaries.Source {
	s := binaries.Source{Version: bare(c.Version)}
	if len(c.URLs) > 0 {
		s.URL = c.URLs[0]
		return s
	}
	s.URL, s.Implied = projectURL(program, cmp.Or(s.Version, otherwise), t.facts.Architecture()), true
	return s
}

// download gives an artifact all its sources, and its digest. Mirrors come
// first.
func (t *translation) download(a *desired.Artifact, c v1alpha1.Component) *desired.Artifact {
	return download(t.config, a, c)
}

func download(config *v1alpha1.NodeConfig, a *desired.Artifact, c v1alpha1.Component) *desired.Artifact {
	urls := c.URLs
	if len(urls) == 0 {
		urls = a.URLs
	}
	var all []string
	for _, u := range urls {
		for _, m := range config.Artifacts.Mirrors {
			if rest, ok := strings.CutPrefix(u, m.Prefix); ok {
				all = append(all, m.URL+rest)
			}
		}
	}
	a.URLs, a.SHA256 = append(all, urls...), strings.ToLower(c.SHA256)
	return a
}

// delegates are the plugins that networks of clusters (flannel, kube-router, canal) call on
// the machine and expect to find there: the package kubernetes-cni brings them, too. Without
// them the node is Ready, and no pod of it starts.
var delegates = []string{"bridge", "host-local", "loopback", "portmap"}

func (t *translation) network() error {
	t.runtime = append(t.runtime, t.add(networkPath, cni.Directories()...)...)
	if t.config.Networking.Mode == v1alpha1.NetworkBridge {
		config, err := t.bridge()
		if err != nil {
			return err
		}
		t.runtime = append(t.runtime, t.add(networkPath.Child("mode"), config)...)
	}
	c := t.config.Components.CNI
	a := t.download(binaries.CNI(t.source("cni", c, cniVersion), delegates...), c)
	t.runtime = append(t.runtime, t.add(componentsPath.Child("cni"), a)...)
	return nil
}

// bridge is the configuration of the pod network, or the template that containerd
// makes it of.
func (t *translation) bridge() (desired.Resource, error) {
	if cidrs := t.config.Networking.PodCIDRs; len(cidrs) > 0 {
		return cni.Bridge(cidrs)
	}
	return cni.Kubenet(true)
}

// templated: the cluster gives the node its pod addresses.
func (t *translation) templated() bool {
	n := t.config.Networking
	return n.Mode == v1alpha1.NetworkBridge && len(n.PodCIDRs) == 0
}

// containerdRuns is the version that will run: that of the document, else that of
// the machine, else the one that it gets.
func (t *translation) containerdRuns() string {
	v := bare(t.config.Components.Containerd.Version)
	if v == "" && t.facts.ContainerdPath != "" {
		return t.facts.ContainerdVersion
	}
	return cmp.Or(v, containerdVersion)
}

func (t *translation) containerd() error {
	c := t.config.Components
	program, runc := cmp.Or(t.facts.ContainerdStarts, t.facts.ContainerdPath, containerdPath), cmp.Or(t.facts.RuncPath, runcPath)
	t.runtime = append(t.runtime, t.add(componentsPath.Child("containerd"),
		t.download(binaries.Containerd(t.source("containerd", c.Containerd, containerdVersion), program), c.Containerd))...)
	t.runtime = append(t.runtime, t.add(componentsPath.Child("runc"),
		t.download(binaries.Runc(t.source("runc", c.Runc, runcVersion), runc), c.Runc))...)
	systemd, err := t.systemdCgroup()
	if err != nil {
		return err
	}
	s := containerd.Settings{
		Version: t.containerdRuns(), Program: program, Runc: runc, VendorUnit: t.facts.HasVendorUnit(containerd.Unit),
		SandboxImage: c.SandboxImage, SystemdCgroup: systemd,
		After: t.runtime, Triggers: append(t.proxyFiles(), program),
	}
	if t.templated() {
		s.CNITemplate = cni.TemplateFile
	} else if t.config.Networking.Mode == v1alpha1.NetworkBridge {
		s.Triggers = append(s.Triggers, cni.BridgeFile)
	}
	rs, err := containerd.Resources(s)
	if err != nil {
		return err
	}
	t.add(componentsPath.Child("containerd"), rs...)
	return t.registryMirrors()
}

// registryMirrors come before the registry itself. containerd reads them at each
// pull.
func (t *translation) registryMirrors() error {
	by := map[string][]int{}
	var order []string
	for i, m := range t.config.Artifacts.RegistryMirrors {
		if by[m.Registry] == nil {
			order = append(order, m.Registry)
		}
		by[m.Registry] = append(by[m.Registry], i)
	}
	t.node = append(t.node, desired.UnitID(containerd.Unit))
	for _, name := range order {
		r := containerd.Registry{Name: name}
		for _, i := range by[name] {
			r.Hosts = append(r.Hosts, containerd.RegistryHost{
				URL: t.config.Artifacts.RegistryMirrors[i].URL, Capabilities: []string{"pull", "resolve"}})
		}
		f, err := r.File("")
		if err != nil {
			return err
		}
		t.node = append(t.node, t.add(artifactsPath.Child("registryMirrors").Index(by[name][0]), f)...)
	}
	return nil
}

// kubernetes is the node archive of the version. kubeadm is nothing that berth needs: it
// is there for whoever looks after the node by hand, as on other nodes of such clusters.
func (t *translation) kubernetes() error {
	c := v1alpha1.Component(t.config.Components.Kubernetes)
	a := t.download(binaries.Kubernetes(t.source("kubernetes", c, ""), binaries.Kubectl, binaries.Kubeadm), c)
	t.node = append(t.node, t.add(componentsPath.Child("kubernetes"), a)...)
	return nil
}

// proxy makes the document's proxy that of the machine's programs.
func (t *translation) proxy() error {
	p := t.config.Proxy
	ids := t.add(proxyPath, proxy.Resources(proxy.Settings{
		HTTP: desired.Secret(p.HTTP), HTTPS: desired.Secret(p.HTTPS), Direct: t.direct(),
		Services: []string{containerd.Unit, kubelet.Unit}, Apt: t.facts.Apt,
	})...)
	t.runtime, t.node = append(t.runtime, ids...), append(t.node, ids...)
	return nil
}

// direct is what no proxy stands before: nodes and API server reach each other.
func (t *translation) direct() []string {
	host, _, _ := serverOf(t.config.Cluster.Server)
	out := []string{"localhost", "127.0.0.1", "::1", host}
	for _, d := range t.config.Proxy.NoProxy {
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// proxyFiles are what services read of the proxy when they start.
func (t *translation) proxyFiles() []string {
	if t.config.Proxy.HTTP == "" && t.config.Proxy.HTTPS == "" {
		return nil
	}
	return []string{proxy.VariablesFile}
}

// bundles are the CA certificates that the machine is to trust.
func (t *translation) bundles() (out [][]byte) {
	for i, p := range t.config.Trust.CAFiles {
		out = append(out, t.certificates(trustPath.Child("caFiles").Index(i), p))
	}
	for _, text := range t.config.Trust.CAs {
		out = append(out, []byte(text))
	}
	return out
}
