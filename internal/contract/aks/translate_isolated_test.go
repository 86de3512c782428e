package aks

import (
	"runtime"
	"testing"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/desired"
)

// In a cluster without a way out programs come from its registry, as the node's
// identity, at the published places.
func TestProgramsOfAnIsolatedCluster(t *testing.T) {
	const server = "acr.azurecr.example/aks"
	arch := "-linux-" + runtime.GOARCH
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
			if asked := len(a.Files) > 1; id == "kubernetes" && asked != (c.kube+c.custom != "") {
				t.Errorf("%s: kubectl is wanted: %v", name, asked)
			}
			if got != want || inRegistry(got) && (a.Via == nil || a.Via.Identity.ClientID != "kubelet-identity") {
				t.Errorf("%s: %s from %q, want %q, via %+v", name, id, got, want, a.Via)
			}
		}
	}
}
