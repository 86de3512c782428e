package aks

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component/azurejson"
	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/cloudca"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/streaming"
	"github.com/berth-dev/berth/internal/component/tempdisk"
	"github.com/berth-dev/berth/internal/component/trust"
	"github.com/berth-dev/berth/internal/component/ulimits"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

func (t *translation) trust() error {
	var bundles [][]byte
	for _, c := range t.cfg.GetCustomCaCerts() {
		b, err := unbase64("custom_ca_certs", c)
		if err != nil {
			return err
		}
		bundles = append(bundles, b)
	}
	rs, err := trust.Resources("aks-custom-ca", bundles)
	if err != nil {
		return err
	}
	t.runtime = append(t.runtime, t.add("custom_ca_certs", rs...)...)
	return t.cloudTrust()
}

// cloudTrust is that of a cloud that has certificate authorities of its own. An image may
// become a machine of another one.
func (t *translation) cloudTrust() error {
	if !t.joins() || !inCustomCloud(t) {
		return nil
	}
	rs, err := cloudca.Anchors(t.facts.CloudCAs)
	if err != nil {
		return err
	}
	const field = "custom_cloud_config.custom_cloud_env_name"
	t.runtime = append(t.runtime, t.add(field, rs...)...)
	t.add(field, cloudca.Timers(t.facts.Program)...)
	return nil
}

func (t *translation) kubenet() bool {
	return t.cfg.GetNetworkConfig().GetNetworkPlugin() == aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_KUBENET
}

// bridged: containerd makes the bridge of the pod network. With calico it must
// not: pods that start before calico does would stay on it.
func (t *translation) bridged() bool {
	return t.kubenet() && t.cfg.GetNetworkConfig().GetNetworkPolicy() != aksnodeconfigv1.NetworkPolicy_NETWORK_POLICY_CALICO
}

// network: a node whose network somebody else installs needs no plugin but the
// one that sets up the loopback interface.
func (t *translation) network() error {
	plugins := []string{"loopback"}
	if t.kubenet() {
		plugins = []string{"bridge", "host-local", "loopback", "portmap"}
	}
	if installsAzure(t) {
		plugins = []string{"loopback", "portmap"}
	}
	if t.bridged() {
		template, err := cni.Kubenet(false)
		if err != nil {
			return err
		}
		t.runtime = append(t.runtime, t.add("network_config.network_plugin", template)...)
	}
	source := binaries.Source{URL: artifactURL(t.cfg.GetNetworkConfig().GetCniPluginsUrl())}
	t.runtime = append(t.runtime, t.add("network_config.network_plugin", cni.Directories()...)...)
	t.runtime = append(t.runtime, t.add("network_config.cni_plugins_url", binaries.CNI(source, plugins...))...)
	return t.azurePlugins()
}

// installsAzure: without an archive the plugins are the image's, and who configures them
// is not known.
func installsAzure(t *translation) bool {
	return azurePlugin(t) && t.cfg.GetNetworkConfig().GetVnetCniPluginsUrl() != ""
}

func (t *translation) azurePlugins() error {
	if !installsAzure(t) {
		return nil
	}
	conf, err := cni.Azure()
	if err != nil {
		return err
	}
	from := binaries.Source{URL: artifactURL(t.cfg.GetNetworkConfig().GetVnetCniPluginsUrl())}
	conf.Order().After = t.add("network_config.vnet_cni_plugins_url", binaries.AzureCNI(from))
	t.runtime = append(t.runtime, t.add("network_config.network_plugin", conf)...)
	return nil
}

// artifactURL gives a reference to a registry the scheme that it may lack.
func artifactURL(text string) string {
	from, _ := decode.ArtifactURL(text)
	return from
}

func (t *translation) packageURL() string {
	return cmp.Or(artifactURL(t.cfg.GetContainerdConfig().GetContainerdPackageUrl()), t.baseURL())
}

// baseURL is the project's own archive of the version that the document names, below
// containerd_download_url_base; "" where another archive is named, or no version.
func (t *translation) baseURL() string {
	c := t.cfg.GetContainerdConfig()
	version := strings.TrimPrefix(c.GetContainerdVersion(), "v")
	base, err := url.Parse(c.GetContainerdDownloadUrlBase())
	if err != nil || !slices.Contains([]string{"https", "http", "file"}, base.Scheme) || version == "" || c.GetContainerdPackageUrl() != "" {
		return ""
	}
	return strings.TrimRight(c.GetContainerdDownloadUrlBase(), "/") + "/containerd-" + version + "-linux-" + t.facts.Architecture() + ".tar.gz"
}

func runcURL(cfg *aksnodeconfigv1.Configuration) string {
	return artifactURL(cfg.GetRuncConfig().GetRuncPackageUrl())
}

var versionInName = lazyregexp.New(`containerd(?:2|\.io)?[-_](?:static-)?(\d+\.\d+\.\d+)`)

// containerdVersion is the version that will run. Where the contract names an
// archive it is the archive's, before and after it was unpacked.
func (t *translation) containerdVersion() string {
	from := t.packageURL()
	if from == "" {
		return t.facts.ContainerdVersion
	}
	if v := t.cfg.GetContainerdConfig().GetContainerdVersion(); v != "" {
		return strings.TrimPrefix(v, "v")
	}
	if u, err := url.Parse(from); err == nil {
		if m := versionInName().FindStringSubmatch(path.Base(u.Path)); m != nil {
			return m[1]
		}
	}
	return ""
}

// metrics is where the cluster's monitoring expects containerd's figures, as published.
const metrics = "0.0.0.0:10257"

const (
	containerdPath = "/usr/local/bin/containerd"
	runcPath       = "/usr/local/sbin/runc"
)

func (t *translation) containerd() error {
	program, runc := cmp.Or(t.facts.ContainerdStarts, t.facts.ContainerdPath, containerdPath), cmp.Or(t.facts.RuncPath, runcPath)
	t.runtimePrograms(program, runc)
	limits := t.cfg.GetCustomLinuxOsConfig().GetUlimitConfig()
	t.add("custom_linux_os_config.ulimit_config", ulimits.Resources(ulimits.Settings{
		NoFile: limits.GetNoFile(), MemLock: limits.GetMaxLockedMemory()})...)
	s := containerd.Settings{
		Version: t.containerdVersion(), Program: program, Runc: runc, VendorUnit: t.facts.HasVendorUnit(containerd.Unit),
		Root:          t.cfg.GetKubeletConfig().GetContainerDataDir(),
		SandboxImage:  t.cfg.GetKubeBinaryConfig().GetPodInfraContainerImageUrl(),
		SystemdCgroup: t.systemdCgroup(), Mirrors: t.mirrors(),
		Metrics: metrics, Client: "azure/aks", Kata: t.cfg.GetIsKata(), NVIDIA: usesGPUs(t), Streaming: t.cfg.GetEnableArtifactStreaming(),
		After: t.runtime, Triggers: append(t.proxyFiles(), program),
	}
	if t.bridged() {
		s.CNITemplate = cni.TemplateFile
	}
	var err error
	if s.Slice, err = t.reservedSlice(); err != nil {
		return err
	}
	rs, err := containerd.Resources(s)
	if err != nil {
		return err
	}
	t.add("containerd_config", rs...)
	t.node = append(t.node, desired.UnitID(containerd.Unit))
	if s.Streaming {
		t.node = append(t.node, t.add("enable_artifact_streaming", streaming.Resources(streaming.Settings{
			Setup: t.facts.StreamingSetup, After: []desired.ID{desired.UnitID(containerd.Unit)}, Triggers: t.proxyFiles()})...)...)
	}
	return nil
}

func (t *translation) reservedSlice() (string, error) {
	s, err := t.kubeletFlagsAndConfig()
	if err != nil || !t.joins() {
		return "", err
	}
	return s.ReservedSlice(), nil
}

func (t *translation) runtimePrograms(program, runc string) {
	from := binaries.Source{URL: t.packageURL()}
	if from.URL != "" {
		from.Version = t.containerdVersion()
	}
	fromRunc := binaries.Source{URL: runcURL(t.cfg)}
	if fromRunc.URL != "" {
		fromRunc.Version = strings.TrimPrefix(t.cfg.GetRuncConfig().GetRuncVersion(), "v")
	}
	t.runtime = append(t.runtime, t.add("containerd_config.containerd_package_url", binaries.Containerd(from, program))...)
	t.runtime = append(t.runtime, t.add("runc_config.runc_package_url",
		binaries.Runc(fromRunc, runc))...)
}

// microsoftRegistry holds the images of AKS.
const microsoftRegistry = "mcr.microsoft.com"

func (t *translation) mirrors() []containerd.Mirror {
	switch server := t.cfg.GetBootstrapProfileContainerRegistryServer(); {
	case server != "":
		return []containerd.Mirror{{Registry: microsoftRegistry, Server: server, InPath: true}}
	case t.cloud() == azurejson.ChinaCloud:
		return []containerd.Mirror{{Registry: "mcr.azk8s.cn", Server: "mcr.azure.cn"}}
	}
	return nil
}

// systemdCgroup: kubelet and containerd must agree. kubelet's own flag goes
// first, then the contract's word; without either it is as the published
// configuration files of the two generations of containerd have it.
func (t *translation) systemdCgroup() bool {
	if driver := t.cfg.GetKubeletConfig().GetKubeletFlags()[cgroupFlag]; driver != "" {
		return driver == "systemd"
	}
	if t.cfg.NeedsCgroupv2 != nil {
		return t.cfg.GetNeedsCgroupv2()
	}
	return containerd.Modern(t.containerdVersion())
}

const cgroupFlag = "--cgroup-driver"

// versioned says whether the image holds the kubelet of the contract's version. An
// archive that somebody names on purpose goes before it.
func (t *translation) versioned() bool {
	return !t.namesOwnArchive() && !t.byTag() && t.facts.HasVersion("kubelet", t.cfg.GetKubernetesVersion())
}

// namesOwnArchive: an archive that somebody chose goes before what images bring.
func (t *translation) namesOwnArchive() bool {
	k := t.cfg.GetKubeBinaryConfig()
	return k.GetCustomKubeBinaryUrl() != "" || k.GetPrivateKubeBinaryUrl() != ""
}

// byTag: a tag of the virtual machine has the image's packages go before its other
// programs and the cloud's archive. Without a package of kubelet there is nothing to take.
func (t *translation) byTag() bool {
	return t.facts.FromPackages && !t.namesOwnArchive() && t.facts.Package("kubelet", t.cfg.GetKubernetesVersion()) != ""
}

func (t *translation) linked() []desired.ID {
	var ids []desired.ID
	for _, program := range []string{binaries.Kubelet, binaries.Kubectl} {
		if version := t.cfg.GetKubernetesVersion(); t.facts.HasVersion(path.Base(program), version) {
			proof, link := binaries.Versioned(program, version)
			ids = append(ids, t.add("kubernetes_version", proof, link)...)
		}
	}
	return ids
}

// packaged are the programs out of packages that the image holds: clients name no
// archive from Kubernetes 1.34 on. Without one of kubelet there is nothing to take.
func (t *translation) packaged() []desired.ID {
	version := t.cfg.GetKubernetesVersion()
	file := t.facts.Package("kubelet", version)
	if decode.KubeURL(t.cfg) != "" && !t.byTag() || file == "" {
		return nil
	}
	ids := t.add("kubernetes_version", binaries.Packaged("kubernetes", binaries.Kubelet, version, file))
	if file := t.facts.Package("kubectl", version); file != "" {
		at := cmp.Or(t.facts.KubectlPath, binaries.Kubectl)
		ids = append(ids, t.add("kubernetes_version", binaries.Packaged("kubectl", at, version, file))...)
	}
	return ids
}

func (t *translation) kubernetes() error {
	if t.versioned() {
		if ids := t.linked(); t.joins() {
			t.node = append(t.node, ids...)
		}
		return nil
	}
	if ids := t.packaged(); len(ids) > 0 {
		if t.joins() {
			t.node = append(t.node, ids...)
		}
		return nil
	}
	source := binaries.Source{URL: t.kubeSource(), Implied: decode.KubeURL(t.cfg) == "", Version: t.cfg.GetKubernetesVersion()}
	ids := t.add("kube_binary_config", binaries.Kubernetes(source, cmp.Or(t.facts.KubectlPath, binaries.Kubectl)))
	if t.joins() {
		t.node = append(t.node, ids...)
	}
	return nil
}

// kubelet is the last part: it comes after everything else.
func (t *translation) kubelet() error {
	s, err := t.kubeletSettings()
	if err != nil {
		return err
	}
	rs, err := kubelet.Resources(s)
	if err != nil {
		return err
	}
	t.blameToken(rs)
	t.onTempDisk(rs)
	t.add("kubelet_config", rs...)
	return t.bridge(rs)
}

// tempDiskPatience is how long a disk that the image mounts at boot is waited for.
const tempDiskPatience = 2 * time.Minute

// onTempDisk has kubelet's data, when all of it is written, on the temporary disk before
// kubelet starts.
func (t *translation) onTempDisk(rs []desired.Resource) {
	if !tempDisk(t) || !t.joins() {
		return
	}
	const field = "kubelet_config.kubelet_disk_type"
	s := tempdisk.Settings{Program: t.facts.Program, Patience: t.budget(2, tempDiskPatience)}
	waits := t.add(field, append(tempdisk.Files(s), tempdisk.Check(s))...)
	for _, r := range rs {
		if u, ok := r.(*desired.Unit); ok && u.Name == kubelet.Unit {
			mounted := t.add(field, tempdisk.Service(slices.Concat(waits, u.After)))
			u.After = slices.Concat(u.After, waits, mounted)
		}
	}
}

// bridge is what containerd makes of the template for the Node that kubelet
// registers.
func (t *translation) bridge(rs []desired.Resource) error {
	for _, r := range rs {
		n, ok := r.(*desired.NodeObject)
		if !ok || !t.bridged() {
			continue
		}
		made, err := cni.KubenetMade(false, kubelet.Unit, n.Name, n.Kubeconfig)
		if err != nil {
			return err
		}
		t.add("network_config.network_plugin", made)
	}
	return nil
}

// blameToken: what is wrong with a certificate that was asked for with a token or as an
// identity is, for whoever wrote the contract, the token or the identity.
func (t *translation) blameToken(rs []desired.Resource) {
	for _, r := range rs {
		c, ok := r.(*desired.ClientCertificate)
		switch {
		case ok && c.Token != "":
			c.Field = "bootstrapping_config.tls_bootstrapping_token"
		case ok && c.Azure != nil:
			c.Field = "bootstrapping_config.bootstrapping_auth_method"
		}
	}
}
