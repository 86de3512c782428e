package aks

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
)

// The image of the sandbox comes out of the cluster's registry, as the node's
// identity, before kubelet starts, and stays.
func TestSandboxImageOfAnIsolatedCluster(t *testing.T) {
	const server, digest = "acr.azurecr.example/aks", "sha256:b9af3cb6c4d1bd4c1ff6e95b9ee0f3a5e0a4b0e40bc6b5b7b0b8a1a0f4ee4f3a"
	const image = "mcr.microsoft.com/oss/kubernetes/pause:3.10"
	for name, c := range map[string]struct {
		server, image string
		change        func(*component.Facts, *aksnodeconfigv1.Configuration)
		want          desired.Image
	}{
		"Microsoft's": {server: server, image: image, want: desired.Image{Reference: image, Source: "oci://" + server + "/oss/kubernetes/pause:3.10"}},
		"by digest":   {server: server, image: image + "@" + digest, want: desired.Image{Reference: "mcr.microsoft.com/oss/kubernetes/pause@" + digest, Source: "oci://" + server + "/oss/kubernetes/pause@" + digest}},
		"another's":   {server: server, image: "r.example/pause", want: desired.Image{Reference: "r.example/pause:latest", Source: "oci://r.example/pause:latest"}},
		"in a bundle": {server: server, image: image, want: desired.Image{Reference: image, Digest: digest}, change: func(f *component.Facts, _ *aksnodeconfigv1.Configuration) {
			f.Images = []component.BundledImage{{Reference: image, Digest: digest}}
		}},
		"containerd's": {server: server},
		"not isolated": {image: image},
		"an image":     {server: server, image: image, change: func(_ *component.Facts, c *aksnodeconfigv1.Configuration) { c.PreProvisionOnly = true }},
	} {
		cfg, facts := sample(t, "minimal.json"), machine
		cfg.BootstrapProfileContainerRegistryServer = c.server
		cfg.AuthConfig.AssignedIdentityId = "kubelet-identity"
		cfg.KubeBinaryConfig = &aksnodeconfigv1.KubeBinaryConfig{PodInfraContainerImageUrl: c.image}
		if c.change != nil {
			c.change(&facts, cfg)
		}
		st := translate(t, cfg, facts)
		got, ok := st.Lookup(desired.ImageID(c.want.Reference)).(*desired.Image)
		if c.want.Reference == "" {
			if i := slices.IndexFunc(st.Resources, func(r desired.Resource) bool { return r.Kind() == "image" }); i >= 0 {
				t.Errorf("%s: %+v", name, st.Resources[i])
			}
			continue
		}
		if !ok || !got.Pinned || got.Source != c.want.Source || got.Digest != c.want.Digest {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		} else if got.Source != "" && got.Via.Identity.ClientID != "kubelet-identity" || !slices.Contains(st.Lookup(desired.UnitID("kubelet.service")).Order().After, got.ID()) {
			t.Errorf("%s: via %+v, kubelet after %v", name, got.Via, st.Lookup(desired.UnitID("kubelet.service")).Order().After)
		}
	}
}

// From 1.34 on clients name no archive: the image's packages are the source, before
// the cluster's registry; a name that somebody gives goes before both.
func TestProgramsOutOfPackages(t *testing.T) {
	const kubelet, kubectl = "/opt/kubelet/downloads/kubelet_1.34.2-1_amd64.deb", "/opt/kubectl/downloads/kubectl_1.34.2-1_amd64.deb"
	for name, c := range map[string]struct {
		packages        []string
		url, registry   string
		custom          string
		tag             bool
		kubelet, second string
	}{
		"both":       {packages: []string{kubectl, kubelet}, kubelet: "file://" + kubelet, second: "file://" + kubectl},
		"isolated":   {packages: []string{kubelet}, registry: "acr.example", kubelet: "file://" + kubelet},
		"an address": {packages: []string{kubectl, kubelet}, url: "https://p.example/k.tar.gz", kubelet: "https://p.example/k.tar.gz"},
		"by a tag":   {packages: []string{kubectl, kubelet}, url: "https://p.example/k.tar.gz", tag: true, kubelet: "file://" + kubelet, second: "file://" + kubectl},
		"a choice":   {packages: []string{kubectl, kubelet}, custom: "https://p.example/k.tar.gz", tag: true, kubelet: "https://p.example/k.tar.gz"},
		"none there": {url: "https://p.example/k.tar.gz", tag: true, kubelet: "https://p.example/k.tar.gz"},
		"another":    {packages: []string{"/opt/kubelet/downloads/kubelet_1.34.20-1_amd64.deb"}},
		"no kubelet": {packages: []string{kubectl}},
	} {
		cfg, facts := sample(t, "minimal.json"), machine
		facts.Packages, facts.FromPackages = c.packages, c.tag
		if c.tag {
			facts.VersionedPrograms = []string{"kubectl-1.34.2"}
		}
		cfg.KubernetesVersion, cfg.BootstrapProfileContainerRegistryServer = "1.34.2", c.registry
		cfg.KubeBinaryConfig = &aksnodeconfigv1.KubeBinaryConfig{KubeBinaryUrl: c.url, CustomKubeBinaryUrl: c.custom}
		st := translate(t, cfg, facts)
		after := st.Lookup(desired.UnitID("kubelet.service")).Order().After
		for id, want := range map[string]string{"kubernetes": c.kubelet, "kubectl": c.second} {
			a, _ := st.Lookup(desired.ArtifactID(id)).(*desired.Artifact)
			if a == nil {
				a = &desired.Artifact{}
			} else if !slices.Contains(after, a.ID()) || a.Version != "1.34.2" {
				t.Errorf("%s: kubelet after %v, version %s", name, after, a.Version)
			}
			if got := append(a.URLs, "")[0]; got != want {
				t.Errorf("%s: %s from %q, want %q", name, id, got, want)
			}
		}
	}
}

// In a cluster without a way out programs come from its registry, as the node's
// identity, at the published paths.
func TestProgramsOfAnIsolatedCluster(t *testing.T) {
	const server = "acr.azurecr.example/aks"
	arch := "-linux-" + runtime.GOARCH
	implied := "oci://" + server + "/oss/binaries/kubernetes/azure-acr-credential-provider:v1.34.2" + arch
	for name, c := range map[string]struct{ kube, custom, provider, wantKube, wantProvider string }{
		"no address":      {wantKube: "oci://" + server + "/oss/binaries/kubernetes/kubernetes-node:v1.34.2" + arch},
		"an address":      {kube: "https://p.example/kubernetes/v1.34.2/binaries/kubernetes-node-linux-amd64.tar.gz", wantKube: "oci://" + server + "/oss/binaries/kubernetes/kubernetes-node:v1.34.2" + arch},
		"a repaired one":  {kube: "https://p.example/kubernetes/v1.34.2-hotfix20260101/binaries/x.tar.gz", wantKube: "oci://" + server + "/oss/binaries/kubernetes/kubernetes-node:v1.34.2-hotfix20260101" + arch},
		"in a registry":   {kube: "acr.example/oss/kubernetes-node:v1.34.2-linux-amd64", wantKube: "oci://acr.example/oss/kubernetes-node:v1.34.2-linux-amd64"},
		"on purpose":      {custom: "https://p.example/k.tar.gz", wantKube: "https://p.example/k.tar.gz"},
		"from the medium": {kube: "file:///srv/k.tar.gz", wantKube: "file:///srv/k.tar.gz"},
		"a provider": {custom: "https://p.example/k.tar.gz", wantKube: "https://p.example/k.tar.gz",
			provider:     "https://p.example/v1.33.6/binaries/azure-acr-credential-provider-linux-amd64-v1.33.6.tar.gz",
			wantProvider: "oci://" + server + "/oss/binaries/kubernetes/azure-acr-credential-provider:v1.33.6" + arch},
	} {
		cfg := sample(t, "minimal.json")
		cfg.KubernetesVersion, cfg.BootstrapProfileContainerRegistryServer = "1.34.2", server
		cfg.AuthConfig.AssignedIdentityId = "kubelet-identity"
		cfg.KubeBinaryConfig = &aksnodeconfigv1.KubeBinaryConfig{KubeBinaryUrl: c.kube, CustomKubeBinaryUrl: c.custom, LinuxCredentialProviderUrl: c.provider}
		cfg.KubeletConfig = &aksnodeconfigv1.KubeletConfig{KubeletFlags: map[string]string{
			"--image-credential-provider-config": "/etc/p.yaml", "--image-credential-provider-bin-dir": "/opt/p"}}
		st := translate(t, cfg, machine)
		for id, want := range map[string]string{"kubernetes": c.wantKube, "acr-credential-provider": c.wantProvider} {
			a := st.Lookup(desired.ArtifactID(id)).(*desired.Artifact)
			got := append(a.URLs, "")[0]
			if id != "kubernetes" && c.provider == "" {
				want = implied
			}
			if asked := len(a.Files) > 1; id == "kubernetes" && asked != (c.kube+c.custom != "") {
				t.Errorf("%s: kubectl is wanted: %v", name, asked)
			}
			if got != want || inRegistry(got) && (a.Via == nil || a.Via.Identity.ClientID != "kubelet-identity") {
				t.Errorf("%s: %s from %q, want %q, via %+v", name, id, got, want, a.Via)
			}
		}
	}
}

// The credential provider comes out of the image's package, too: an address goes
// before it, and it before the cluster's registry.
func TestProviderOutOfPackages(t *testing.T) {
	const file = "/opt/azure-acr-credential-provider/downloads/azure-acr-credential-provider_1.34.9-ubuntu24.04u1_amd64.deb"
	for name, c := range map[string]struct {
		packages      []string
		url, registry string
		want          string
	}{
		"package":       {packages: []string{file}, want: "file://" + file},
		"isolated":      {packages: []string{file}, registry: "acr.example", want: "file://" + file},
		"an address":    {packages: []string{file}, url: "https://p.example/p.tar.gz", want: "https://p.example/p.tar.gz"},
		"another minor": {packages: []string{strings.ReplaceAll(file, "1.34.9", "1.33.9")}},
	} {
		cfg, facts := sample(t, "minimal.json"), machine
		facts.Packages = c.packages
		cfg.KubernetesVersion, cfg.BootstrapProfileContainerRegistryServer = "1.34.2", c.registry
		cfg.KubeBinaryConfig = &aksnodeconfigv1.KubeBinaryConfig{LinuxCredentialProviderUrl: c.url}
		cfg.KubeletConfig = &aksnodeconfigv1.KubeletConfig{KubeletFlags: map[string]string{
			"--image-credential-provider-config": "/etc/p.yaml", "--image-credential-provider-bin-dir": "/opt/p"}}
		st := translate(t, cfg, facts)
		a := st.Lookup(desired.ArtifactID("acr-credential-provider")).(*desired.Artifact)
		if got := append(a.URLs, "")[0]; got != c.want || !slices.Contains(st.Lookup(desired.UnitID("kubelet.service")).Order().After, a.ID()) {
			t.Errorf("%s: from %q, want %q", name, got, c.want)
		}
	}
}
