package aks

import (
	"cmp"
	"strings"

	"github.com/berth-dev/berth/internal/component/credentialprovider"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// published is where the registry of a cluster without a way out has programs:
// updateKubeBinaryRegistryURL and downloadCredentialProvider of the published scripts.
const published = "/oss/binaries/kubernetes/"

// isolated says whether a program comes out of the cluster's own registry: what a
// contract names outside can't be reached, unless it is in a registry itself.
func (t *translation) isolated(url string) bool {
	return t.cfg.GetBootstrapProfileContainerRegistryServer() != "" && !inRegistry(artifactURL(url)) && !strings.HasPrefix(url, "file:")
}

var versionInPath = lazyregexp.New(`v(\d+\.\d+\.\d+(?:-[A-Za-z0-9.]+)?)(?:/|-linux|\.tar|$)`)

// fromCluster is the reference of a program there. The version is the one in the
// address that the contract has, which may be a repaired one.
func (t *translation) fromCluster(name, url string) string {
	version := t.cfg.GetKubernetesVersion()
	if m := versionInPath().FindStringSubmatch(url); m != nil {
		version = m[1]
	}
	server := t.cfg.GetBootstrapProfileContainerRegistryServer()
	return "oci://" + strings.TrimRight(server, "/") + published + name + ":v" + version + "-linux-" + t.facts.Architecture()
}

// kubeSource is the archive of kubelet. One that somebody names on purpose is
// taken as it is named.
func (t *translation) kubeSource() string {
	k, url := t.cfg.GetKubeBinaryConfig(), decode.KubeURL(t.cfg)
	if named := cmp.Or(k.GetCustomKubeBinaryUrl(), k.GetPrivateKubeBinaryUrl()); named == "" && t.isolated(url) {
		return t.fromCluster("kubernetes-node", url)
	}
	return artifactURL(url)
}

// providerSource is the archive of the credential provider, or the image's package
// of it where the contract names none, as clients do from 1.33 on.
func (t *translation) providerSource() (archive, packaged string) {
	url := t.cfg.GetKubeBinaryConfig().GetLinuxCredentialProviderUrl()
	if url == "" {
		packaged = t.facts.PackageOfMinor(credentialprovider.Program, t.cfg.GetKubernetesVersion())
	}
	if packaged == "" && t.isolated(url) {
		return t.fromCluster(credentialprovider.Program, url), ""
	}
	return artifactURL(url), packaged
}
