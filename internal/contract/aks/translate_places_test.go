package aks

import (
	"slices"
	"strings"
	"testing"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/desired"
)

// A proxy for what is outside is that of downloads, containerd and apt, and not kubelet's,
// which asks the API server.
func TestPrivateEgressProxy(t *testing.T) {
	cfg, facts := sample(t, "minimal.json"), machine
	facts.Apt = true
	cfg.PrivateEgressProxyAddress = "proxy.example:8080"
	cfg.NetworkConfig = &aksnodeconfigv1.NetworkConfig{CniPluginsUrl: "https://packages.example/cni.tgz"}
	st := translate(t, cfg, facts)
	if st.Lookup(desired.FileID("/etc/systemd/system/kubelet.service.d/10-httpproxy.conf")) != nil || st.Lookup(desired.FileID("/etc/systemd/system/containerd.service.d/10-httpproxy.conf")) == nil {
		t.Error("kubelet has the proxy, or containerd has it not")
	}
	via := st.Lookup(desired.ArtifactID("cni-plugins")).(*desired.Artifact).Via
	if via == nil || via.HTTPSProxy != "proxy.example:8080" || !slices.Contains(via.NoProxy, "169.254.169.254") || !slices.Contains(via.NoProxy, cfg.GetApiServerConfig().GetApiServerName()) {
		t.Errorf("downloads go by %+v", via)
	}
	cfg.HttpProxyConfig = &aksnodeconfigv1.HttpProxyConfig{HttpsProxy: "http://first.example"}
	if via := translate(t, cfg, facts).Lookup(desired.ArtifactID("cni-plugins")).(*desired.Artifact).Via; via.HTTPSProxy != "http://first.example" || via.HTTPProxy != "" {
		t.Errorf("with another one they go by %+v", via)
	}
}

// The image of kube-proxy comes before its pod asks for it, from where the cluster has its
// images; one that a bundle or the sandbox brings is not asked for twice.
func TestKubeProxyImage(t *testing.T) {
	const name = "mcr.microsoft.com/oss/kubernetes/kube-proxy:v1.36.3"
	cfg := sample(t, "minimal.json")
	cfg.KubeProxyUrl = name
	image := func() *desired.Image {
		i, _ := translate(t, cfg, machine).Lookup(desired.ImageID(name)).(*desired.Image)
		return i
	}
	if i := image(); i == nil || !i.Optional || i.Source != "oci://"+name {
		t.Errorf("%+v", i)
	}
	cfg.BootstrapProfileContainerRegistryServer = "registry.example/aks"
	if i := image(); i == nil || i.Source != "oci://registry.example/aks/oss/kubernetes/kube-proxy:v1.36.3" {
		t.Errorf("in an isolated cluster: %+v", i)
	}
	cfg.KubeBinaryConfig = &aksnodeconfigv1.KubeBinaryConfig{PodInfraContainerImageUrl: name}
	if i := image(); i == nil || i.Optional {
		t.Errorf("as the sandbox: %+v", i)
	}
	cfg.KubeBinaryConfig, cfg.KubeProxyUrl = nil, "https://x/y"
	if i := image(); i != nil {
		t.Errorf("of no image: %+v", i)
	}
}

// Without an archive that is named, the one of the version below the base is containerd's.
func TestContainerdBelowBase(t *testing.T) {
	for name, c := range map[string]struct {
		in   *aksnodeconfigv1.ContainerdConfig
		want string
	}{
		"version":    {&aksnodeconfigv1.ContainerdConfig{ContainerdDownloadUrlBase: "https://x.example/c/", ContainerdVersion: "v2.2.9"}, "https://x.example/c/containerd-2.2.9-linux-"},
		"no version": {&aksnodeconfigv1.ContainerdConfig{ContainerdDownloadUrlBase: "https://x.example/c/"}, ""},
		"no scheme":  {&aksnodeconfigv1.ContainerdConfig{ContainerdDownloadUrlBase: "x.example/c", ContainerdVersion: "2.2.9"}, ""},
		"archive":    {&aksnodeconfigv1.ContainerdConfig{ContainerdDownloadUrlBase: "https://x.example/c", ContainerdVersion: "2.2.9", ContainerdPackageUrl: "https://y.example/c.tgz"}, "https://y.example/c.tgz"},
	} {
		cfg := sample(t, "minimal.json")
		cfg.ContainerdConfig = c.in
		a := translate(t, cfg, machine).Lookup(desired.ArtifactID("containerd")).(*desired.Artifact)
		if got := strings.Join(a.URLs, " "); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Azure's plugins and their configuration come together, before containerd starts.
func TestAzurePlugins(t *testing.T) {
	cfg := sample(t, "minimal.json")
	cfg.NetworkConfig = &aksnodeconfigv1.NetworkConfig{
		NetworkPlugin: aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_AZURE, VnetCniPluginsUrl: "https://packages.example/azure-vnet.tgz",
	}
	st := translate(t, cfg, machine)
	conf := desired.FileID("/etc/cni/net.d/10-azure.conflist")
	if st.Lookup(conf) == nil || !slices.Contains(st.Lookup(desired.UnitID("containerd.service")).Order().After, conf) {
		t.Error("no configuration before containerd")
	}
	if a, ok := st.Lookup(desired.ArtifactID("azure-cni")).(*desired.Artifact); !ok || len(a.Files) != 3 {
		t.Errorf("%+v", a)
	}
	if len(st.Partial) > 0 {
		t.Errorf("partly in force: %v", st.Partial)
	}
}
