package component

import "testing"

func TestHasVersion(t *testing.T) {
	f := Facts{VersionedPrograms: []string{"kubelet-1.34.2", "kubectl-"}}
	if !f.HasVersion("kubelet", "1.34.2") || f.HasVersion("kubelet", "1.34.1") || f.HasVersion("kubectl", "") {
		t.Error("kubelet 1.34.2 alone is there")
	}
}

func TestPackage(t *testing.T) {
	const dir = "/opt/kubelet/downloads/"
	f := Facts{Packages: []string{dir + "kubelet-1.34.3-1.azl3.x86_64.rpm", dir + "kubelet_1.34.1-1ubuntu22.04u1_amd64.deb", dir + "kubelet_1.34.1-2ubuntu22.04u1_amd64.deb",
		dir + "kubelet_1.34.10-1_amd64.deb", dir + "kubelet_1.34.2", dir + "kubelet_1.34.4-1.tar.gz", dir + "kubelet_1.34.5-1_amd64.rpm"}}
	for version, want := range map[string]string{
		"1.34.1": dir + "kubelet_1.34.1-2ubuntu22.04u1_amd64.deb", "1.34.10": dir + "kubelet_1.34.10-1_amd64.deb",
		"1.34.3": dir + "kubelet-1.34.3-1.azl3.x86_64.rpm", "1.34": "", "1.34.2": "", "1.34.4": "", "1.34.5": "", "": "",
	} {
		if got := f.Package("kubelet", version); got != want {
			t.Errorf("%q: got %q, want %q", version, got, want)
		}
	}
	if got := f.Package("kubectl", "1.34.1"); got != "" {
		t.Errorf("kubectl: got %q", got)
	}
}

// The credential provider has patches of its own: the newest of the minor version
// counts, one that is not released after those that are.
func TestPackageOfMinor(t *testing.T) {
	const dir = "/opt/azure-acr-credential-provider/downloads/"
	deb := func(version string) string { return dir + "azure-acr-credential-provider_" + version + "_amd64.deb" }
	f := Facts{Packages: []string{deb("1.33.12-ubuntu22.04u1"), deb("1.34.10-ubuntu22.04u1"), deb("1.34.2-ubuntu22.04u1"), deb("1.34.2~beta.1"), deb("1.35.0-ubuntu22.04u1"),
		deb("1.35.0~beta.2"), deb("1.36"), deb("1.340.1-1"), deb("1.37.0~beta.1"), dir + "azure-acr-credential-provider-1.38.1-1.azl3.x86_64.rpm", dir + "azure-acr-credential-provider_1.39.1.tar.gz"}}
	for version, want := range map[string]string{
		"1.33.0": deb("1.33.12-ubuntu22.04u1"), "1.34.99": deb("1.34.10-ubuntu22.04u1"), "1.35.7": deb("1.35.0-ubuntu22.04u1"), "1.37.1": deb("1.37.0~beta.1"),
		"1.38.0": dir + "azure-acr-credential-provider-1.38.1-1.azl3.x86_64.rpm", "1.36.0": "", "1.39.1": "", "1.3.1": "", "": "",
	} {
		if got := f.PackageOfMinor("azure-acr-credential-provider", version); got != want {
			t.Errorf("%q: got %q, want %q", version, got, want)
		}
	}
}

func TestHasVendorUnit(t *testing.T) {
	f := Facts{VendorUnits: []string{"containerd.service", "ssh.service"}}
	if !f.HasVendorUnit("containerd.service") || f.HasVendorUnit("kubelet.service") {
		t.Error("vendor units are mixed up")
	}
}
