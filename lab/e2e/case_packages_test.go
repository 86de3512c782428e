package e2e

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// TestCasePackages provisions an image that holds kubelet and the credential provider
// in packages which nobody has installed, as published images do from 1.34 on: no
// archive is named, and the packages stay what they are.
func TestCasePackages(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := addNode(t, l, lab.NodeConfig{Name: "case-packages"})
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	m := &badMachine{l, n}
	file, provider := packKubelet(t, n, l.KubernetesVersion()), putProvider(t, n, l.KubernetesVersion())
	if r := m.provision(t, badCase{name: "packages", config: m.document(t, provides), within: time.Minute}); r.Code != 0 {
		t.Fatalf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	if got := run(t, n, "sh", "-c", "dpkg-query -W kubelet 2>&1 || true"); !strings.Contains(got, "no packages found") {
		t.Errorf("dpkg knows kubelet: %s", got)
	}
	run(t, n, "dpkg-deb", "-I", file)
	if got := run(t, n, providerDir+"/acr-credential-provider"); !strings.Contains(got, `"CredentialProviderResponse"`) {
		t.Errorf("the credential provider says %q", got)
	}
	if got := read(t, n, "/var/lib/kubelet/credential-provider-config.yaml"); !strings.Contains(got, "--ib-apiserver-ip="+lab.APIServerName) || !strings.Contains(got, "tokenAttributes:") {
		t.Errorf("the credential provider's configuration:\n%s", got)
	}
	planIsEmpty(t, l, n)
	run(t, n, "rm", file, provider)
	planIsEmpty(t, l, n)
	run(t, n, "rm", providerDir+"/acr-credential-provider")
	c := badCase{name: "no provider", config: m.document(t, provides), code: 205, field: "kube_binary_config.linux_credential_provider_url",
		says: []string{providerDir + "/acr-credential-provider"}, hint: "linux_credential_provider_url"}
	c.check(t, m, m.provision(t, c))
	attestation(t, m)
}

// attestation ends with its codes where the client is not there, or brings nothing; the
// node stays what it is.
func attestation(t *testing.T, m *badMachine) {
	attested := m.document(t, func(c *aksnodeconfigv1.Configuration) {
		c.BootstrappingConfig = &aksnodeconfigv1.BootstrappingConfig{
			BootstrappingAuthMethod: aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_SECURE_TLS_BOOTSTRAPPING,
		}
	})
	c := badCase{name: "no client", config: attested, code: 169, field: "bootstrapping_config", says: []string{"/opt/bin/aks-secure-tls-bootstrap-client"}, hint: "image"}
	c.check(t, m, m.provision(t, c))
	const client = "/opt/bin/aks-secure-tls-bootstrap-client"
	if err := m.node.WriteFile(client, []byte("#!/bin/sh\necho \"nonce refused for $*\"\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c = badCase{name: "client fails", config: attested, code: 220, field: "bootstrapping_config", says: []string{"secure-tls-bootstrap.service"}, hint: "journalctl"}
	c.check(t, m, m.provision(t, c))
	log := run(t, m.node, "journalctl", "-u", "secure-tls-bootstrap", "-o", "cat", "--no-pager")
	if !strings.Contains(log, "--apiserver-fqdn="+lab.APIServerName+" --cloud-provider-config=/etc/kubernetes/azure.json") {
		t.Errorf("the client was told:\n%s", log)
	}
}

// providerDir is where the credential provider is wanted.
const providerDir = "/var/lib/kubelet/credential-provider"

// provides asks for a credential provider, and names no address of it.
func provides(c *aksnodeconfigv1.Configuration) {
	c.KubeletConfig.KubeletFlags["--image-credential-provider-config"] = "/var/lib/kubelet/credential-provider-config.yaml"
	c.KubeletConfig.KubeletFlags["--image-credential-provider-bin-dir"] = providerDir
	// kubelet does not start with token attributes that it does not take.
	c.ServiceAccountImagePullProfile = &aksnodeconfigv1.ServiceAccountImagePullProfile{Enabled: true, DefaultClientId: "client", LocalAuthoritySni: "sni.lab.test"}
}

// putProvider leaves the package of a credential provider, made with rpmbuild 4.18
// from testdata/azure-acr-credential-provider.spec.
func putProvider(t *testing.T, n *lab.Node, version string) string {
	t.Helper()
	content, err := os.ReadFile("testdata/azure-acr-credential-provider.rpm")
	if err != nil {
		t.Fatal(err)
	}
	minor := strings.TrimPrefix(version[:strings.LastIndexByte(version, '.')], "v")
	file := "/opt/azure-acr-credential-provider/downloads/azure-acr-credential-provider-" + minor + ".1-1.azl3.x86_64.rpm"
	run(t, n, "mkdir", "-p", path.Dir(file))
	if err := n.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// packKubelet moves the image's kubelet into a package, as Debian compresses it.
func packKubelet(t *testing.T, n *lab.Node, version string) string {
	t.Helper()
	version = strings.TrimPrefix(version, "v")
	file := "/opt/kubelet/downloads/kubelet_" + version + "-1_amd64.deb"
	run(t, n, "sh", "-c", fmt.Sprintf(`set -e
mkdir -p /root/p/usr/bin /root/p/DEBIAN /opt/kubelet/downloads
mv /opt/bin/kubelet /root/p/usr/bin/kubelet
printf 'Package: kubelet\nVersion: %s-1\nArchitecture: amd64\nMaintainer: lab <lab@lab.test>\nDescription: kubelet\n' >/root/p/DEBIAN/control
dpkg-deb -Zxz -z0 --root-owner-group -b /root/p %s
rm -r /root/p`, version, file))
	return file
}
