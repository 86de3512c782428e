package faults_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// download makes a configuration that brings its programs along, and lets the
// node sign its own serving certificate.
func download(c *aksnodeconfigv1.Configuration) {
	c.ContainerdConfig.ContainerdPackageUrl = "https://packages.example/containerd-2.2.1-linux-amd64.tar.gz"
	c.RuncConfig.RuncPackageUrl = "https://packages.example/runc.amd64"
	c.KubeletConfig.KubeletConfigFileConfig.ServerTlsBootstrap = false
	c.KubeletConfig.KubeletFlags["--image-credential-provider-config"] = "/var/lib/kubelet/credential-provider-config.yaml"
	c.KubeletConfig.KubeletFlags["--image-credential-provider-bin-dir"] = "/var/lib/kubelet/credential-provider"
}

// unpack makes a configuration that names no address of Kubernetes and of the
// credential provider, as clients do from 1.34 on.
func unpack(c *aksnodeconfigv1.Configuration) {
	download(c)
	k := c.KubeBinaryConfig
	k.KubeBinaryUrl, k.CustomKubeBinaryUrl, k.PrivateKubeBinaryUrl, k.LinuxCredentialProviderUrl = "", "", "", ""
}

// changeKubelet changes what kubelet reads, and kernel parameters.
func changeKubelet(c *aksnodeconfigv1.Configuration) {
	changeFlags(c)
	changeLabels(c)
	changeSysctl(c)
	addClusterCA(c)
}

// changeRuntime changes what containerd reads.
func changeRuntime(c *aksnodeconfigv1.Configuration) {
	c.KubeBinaryConfig.PodInfraContainerImageUrl = "mcr.microsoft.com/oss/kubernetes/pause:3.11"
	c.CustomLinuxOsConfig.UlimitConfig.NoFile = proto.String("2097152:2097152")
	c.BootstrapProfileContainerRegistryServer = "other.azurecr.io/aks"
	addCustomCA(c)
}

func changeFlags(c *aksnodeconfigv1.Configuration) {
	c.KubeletConfig.KubeletFlags["--v"] = "4"
}

func changeLabels(c *aksnodeconfigv1.Configuration) {
	c.KubeletConfig.KubeletNodeLabels["example.com/new"] = "yes"
	delete(c.KubeletConfig.KubeletNodeLabels, "agentpool")
}

func changeSysctl(c *aksnodeconfigv1.Configuration) {
	c.CustomLinuxOsConfig.SysctlConfig.VmSwappiness = proto.Int32(20)
	c.CustomLinuxOsConfig.SysctlConfig.NetNetfilterNfConntrackMax = proto.Int32(262144)
}

// addSwap is about memory, and not about kubelet.
func addSwap(c *aksnodeconfigv1.Configuration) {
	c.CustomLinuxOsConfig.EnableSwapConfig, c.CustomLinuxOsConfig.SwapFileSize = true, 1
	c.CustomLinuxOsConfig.TransparentHugepageSupport = "never"
}

// addClusterCA is a rotation: the old authority stays, so the credential does.
func addClusterCA(c *aksnodeconfigv1.Configuration) {
	old, err := base64.StdEncoding.DecodeString(c.KubernetesCaCert)
	if err != nil {
		panic(err)
	}
	c.KubernetesCaCert = base64.StdEncoding.EncodeToString(append(old, authority()...))
}

func addCustomCA(c *aksnodeconfigv1.Configuration) {
	c.CustomCaCerts = append(c.CustomCaCerts, base64.StdEncoding.EncodeToString(authority()))
}

// authority is a new CA's certificate, the same one in all tests of a run.
var authority = sync.OnceValue(func() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	t := &x509.Certificate{SerialNumber: big.NewInt(9), Subject: pkix.Name{CommonName: "new authority"}, NotBefore: from,
		NotAfter: from.AddDate(20, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
})
