package binaries

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestArtifacts(t *testing.T) {
	for name, source := range map[string]Source{
		"in-image.json": {}, "fetched.json": {URL: "https://packages.example/x.tar.gz#sha256=" + strings.Repeat("00", 32), Version: "1.2.3"},
	} {
		st := golden.State(t, []desired.Resource{
			Kubernetes(source, Kubectl), Containerd(source, "/usr/bin/containerd"), Runc(source, "/usr/bin/runc"),
			CNI(source, "bridge", "loopback"),
		})
		b, err := json.MarshalIndent(st, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, string(b)+"\n")
	}
}

// TestPackages: the files of a distribution's package lie in it as on the machine.
func TestPackages(t *testing.T) {
	for url, want := range map[string]string{
		"https://a.example/runc.amd64":                                  "",
		"https://a.example/moby-runc_1.3.3-ubuntu22.04u1_amd64.deb?s=x": "usr/bin/runc",
		"https://a.example/runc_1.3.3-1_amd64.deb#sha256=00":            "usr/sbin/runc",
		"https://a.example/runc-1.3.3-1.azl3.x86_64.RPM":                "usr/bin/runc",
		"oci://a.example/runc.deb":                                      "",
	} {
		if got := Runc(Source{URL: url}, "/usr/sbin/runc").Files[0].Member; got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	var members []string
	for _, f := range Containerd(Source{URL: "https://a.example/moby-containerd_2.0.0_amd64.deb"}, "/usr/bin/containerd").Files {
		members = append(members, f.Member)
	}
	if want := "usr/bin/containerd usr/bin/containerd-shim-runc-v2 usr/bin/ctr"; strings.Join(members, " ") != want {
		t.Errorf("%s, want %s", members, want)
	}
}

func TestVersioned(t *testing.T) {
	proof, link := Versioned(Kubelet, "1.34.2")
	st := golden.State(t, []desired.Resource{proof, link})
	got := st.Lookup(desired.LinkID(Kubelet)).(*desired.Link)
	if got.Target != "/opt/bin/kubelet-1.34.2" || got.After[0] != desired.ArtifactID("kubelet-1.34.2") {
		t.Errorf("%+v", got)
	}
	if proof.Version != "1.34.2" || proof.Files[0].Path != got.Target || len(proof.URLs) > 0 {
		t.Errorf("%+v", proof)
	}
}

func TestRelease(t *testing.T) {
	for version, want := range map[string]string{
		"1.36.3": "1.36.3", "1.27.102-akslts": "1.27.102", "1.36.3+build5": "1.36.3", "2.0.0-3~deb12u1": "2.0.0",
		"1.37.0-rc.1": "1.37.0-rc.1", "1.37.0-rc.1+x": "1.37.0-rc.1", "2.0.0~rc1": "2.0.0", "": "", "latest": "latest",
	} {
		if got := release(version); got != want {
			t.Errorf("%q became %q, want %q", version, got, want)
		}
	}
}
