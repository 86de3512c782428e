package aks

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/component/imageunits"
	"github.com/berth-dev/berth/internal/desired"
)

var machine = component.Facts{
	Hostname: "Node-1", NodeIP: "10.99.0.11", IPv6: true, ContainerdVersion: "2.2.9",
	ContainerdPath: "/usr/bin/containerd", RuncPath: "/usr/bin/runc",
	VendorUnits: []string{"containerd.service", "ssh.service", "ssh.socket"}, SSHServer: "/usr/sbin/sshd", SSHIncludes: true, IPTables: "/usr/sbin/iptables",
	ImageUnits: imageunits.Names(), StreamingSetup: "/opt/acr/tools/mirror/setup.sh",
}

// bare has none of the programs yet; furnished is the same machine after berth
// put them there.
var (
	bare      = component.Facts{Hostname: "bare", NodeIP: "10.99.0.12"}
	furnished = component.Facts{
		Hostname: "bare", NodeIP: "10.99.0.12", ContainerdVersion: "1.7.29", ContainerdPath: "/usr/local/bin/containerd",
		RuncPath: "/usr/local/sbin/runc", KubectlPath: "/opt/bin/kubectl",
	}
)

func factsOf(variant string) component.Facts {
	if strings.HasPrefix(variant, "bare") {
		return bare
	}
	if variant == "versioned" {
		f := machine
		f.Resolved = true
		f.VersionedPrograms = []string{"kubectl-1.36.3", "kubelet-1.35.0", "kubelet-1.36.3"}
		return f
	}
	if variant == "packaged" {
		f := machine
		f.Packages = []string{"/opt/azure-acr-credential-provider/downloads/azure-acr-credential-provider_1.36.1-1_amd64.deb", "/opt/kubectl/downloads/kubectl_1.36.3-1_amd64.deb", "/opt/kubelet/downloads/kubelet_1.36.3-1_amd64.deb"}
		return f
	}
	if variant == "enforced" {
		f := machine
		f.FromPackages, f.VersionedPrograms = true, []string{"kubelet-1.36.3"}
		f.Packages = []string{"/opt/kubelet/downloads/kubelet_1.36.3-1_amd64.deb"}
		return f
	}
	if variant == "tagged" {
		f := machine
		f.RotationOff = true
		return f
	}
	return machine
}

func sample(t testing.TB, name string) *aksnodeconfigv1.Configuration {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return doc.Config
}

func translate(t testing.TB, cfg *aksnodeconfigv1.Configuration, f component.Facts) *desired.State {
	t.Helper()
	st, err := Translate(&Document{Config: cfg}, f)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// hash is of the printed state: secrets enter by the four digits that they show.
func hash(t testing.TB, st *desired.State) [sha256.Size]byte {
	t.Helper()
	b, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

func TestGoldenStates(t *testing.T) {
	for name, cfg := range variants(t) {
		t.Run(name, func(t *testing.T) {
			st := translate(t, cfg, factsOf(name))
			got, err := json.MarshalIndent(map[string]any{"state": st, "unused": st.Unused, "unhandled": st.Unhandled, "partial": st.Partial}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("state", strings.ReplaceAll(name, " ", "-")+".json"), string(got)+"\n")
		})
	}
}

func TestTranslationIsDeterministic(t *testing.T) {
	cfg := sample(t, "full.json")
	want := hash(t, translate(t, cfg, machine))
	for range 50 {
		if got := hash(t, translate(t, proto.CloneOf(cfg), machine)); got != want {
			t.Fatal("two translations of one configuration differ")
		}
	}
}

func TestTranslationLeavesTheConfigurationAlone(t *testing.T) {
	cfg := sample(t, "full.json")
	before := proto.CloneOf(cfg)
	translate(t, cfg, machine)
	if !proto.Equal(before, cfg) {
		t.Error("translation changed its input")
	}
}

// What berth itself brings onto a machine must not make another state of the
// same configuration: the second run would find work.
func TestBareMachineConverges(t *testing.T) {
	cfg := variants(t)["bare kubenet"]
	if diff := cmp.Diff(text(t, translate(t, cfg, bare)), text(t, translate(t, cfg, furnished))); diff != "" {
		t.Errorf("the state of a furnished machine differs (-bare +furnished):\n%s", diff)
	}
}

func text(t testing.TB, st *desired.State) string {
	t.Helper()
	b, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
