package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
)

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decoded(t testing.TB, name string) *Document {
	t.Helper()
	doc, err := Decode(testdata(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// machineOf is a machine with nothing on it but what the documents name.
func machineOf(t testing.TB) component.Facts {
	ca := testdata(t, "ca.pem")
	return component.Facts{Hostname: "Edge-7", IPv6: true, ClusterCA: ca, Files: map[string][]byte{
		"/etc/berth/ca.pem": ca, "/etc/berth/site.pem": ca, "/etc/berth/node.pem": testdata(t, "client.pem"),
	}}
}

// furnished is that machine after berth has put there what it lacked.
func furnished(t testing.TB) component.Facts {
	f := machineOf(t)
	f.ContainerdPath, f.ContainerdVersion, f.RuncPath = containerdPath, containerdVersion, runcPath
	f.KubectlPath, f.CNIConfigured = "/opt/bin/kubectl", true
	return f
}

// distribution is a machine whose packages bring the runtime.
func distribution(t testing.TB) component.Facts {
	f := machineOf(t)
	f.ContainerdPath, f.ContainerdVersion, f.RuncPath = "/usr/bin/containerd", "1.7.29", "/usr/sbin/runc"
	f.VendorUnits, f.Resolved, f.Apt = []string{"containerd.service"}, true, true
	return f
}

func translated(t testing.TB, doc *Document, f component.Facts) *desired.State {
	t.Helper()
	st, err := Translate(doc, f)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func text(t testing.TB, st *desired.State) string {
	t.Helper()
	b, err := json.MarshalIndent(map[string]any{"state": st, "unused": st.Unused, "unhandled": st.Unhandled, "partial": st.Partial}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

var documents = []string{"minimal.yaml", "full.yaml", "bridge.json", "discovery.yaml"}

func TestGoldenStates(t *testing.T) {
	for _, name := range documents {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, filepath.Join("state", strings.TrimSuffix(name, filepath.Ext(name))+".json"), text(t, translated(t, decoded(t, name), machineOf(t))))
		})
	}
	t.Run("distribution", func(t *testing.T) {
		golden.Check(t, "state/distribution.json", text(t, translated(t, decoded(t, "full.yaml"), distribution(t))))
	})
}

// What berth itself brings onto a machine must not make another state of the same
// document: the second run would find work.
func TestBareMachineConverges(t *testing.T) {
	for _, name := range documents {
		doc := decoded(t, name)
		if name == "full.yaml" { // its containerd is another version
			doc.Config.Components.Containerd.Version = containerdVersion
		}
		bare, after := text(t, translated(t, doc, machineOf(t))), text(t, translated(t, doc, furnished(t)))
		if diff := cmp.Diff(bare, after); diff != "" {
			t.Errorf("%s: the state of a furnished machine differs (-bare +furnished):\n%s", name, diff)
		}
	}
}

func TestTranslationIsDeterministic(t *testing.T) {
	want := text(t, translated(t, decoded(t, "full.yaml"), machineOf(t)))
	for range 20 {
		if got := text(t, translated(t, decoded(t, "full.yaml"), machineOf(t))); got != want {
			t.Fatal("two translations of one document differ")
		}
	}
}

func config(t testing.TB, st *desired.State) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(golden.File(t, st, kubelet.ConfigFile).Content.Data(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// What is handed on to kubelet goes before the rest, member by member, and nothing of
// it is lost.
func TestHandedOnConfiguration(t *testing.T) {
	st := translated(t, decoded(t, "full.yaml"), machineOf(t))
	c := config(t, st)
	webhook := c["authentication"].(map[string]any)["webhook"]
	if want := map[string]any{"enabled": true, "cacheTTL": "1m"}; !reflect.DeepEqual(webhook, want) {
		t.Errorf("webhook %v", webhook)
	}
	if _, there := c["readOnlyPort"]; there {
		t.Error("a null takes nothing away")
	}
	if raw := string(golden.File(t, st, kubelet.ConfigFile).Content.Data()); !strings.Contains(raw, "1.50") {
		t.Errorf("a number is written anew:\n%s", raw)
	}
}

// The same holds for what the document says of reservations in words of its own.
func TestHandedOnReservations(t *testing.T) {
	doc, err := Decode(edited(t, map[string]any{
		"node.kubeReserved": map[string]any{"cpu": "100m", "memory": "256Mi"}, "node.systemReserved": map[string]any{"cpu": "50m"},
		"node.kubeletConfig": map[string]any{"kubeReserved": map[string]any{"memory": "1Gi"}, "systemReserved": map[string]any{"cpu": nil, "pid": "100"}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	c := config(t, translated(t, doc, machineOf(t)))
	want := map[string]any{"kubeReserved": map[string]any{"cpu": "100m", "memory": "1Gi"}, "systemReserved": map[string]any{"pid": "100"}}
	for name, w := range want {
		if diff := cmp.Diff(w, c[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The address that the document names is kubelet's in every version.
func TestNodeIP(t *testing.T) {
	for _, version := range []string{"1.27.9", "1.28.15", "1.29.0", "1.36.3"} {
		doc, err := Decode(edited(t, map[string]any{"components.kubernetes.version": version, "node.nodeIP": "10.1.0.7"}))
		if err != nil {
			t.Fatal(err)
		}
		flags := string(golden.File(t, translated(t, doc, machineOf(t)), kubelet.FlagsFile).Content.Data())
		if !strings.Contains(flags, "--node-ip=10.1.0.7") {
			t.Errorf("%s: %s", version, flags)
		}
	}
}

// kubelet and containerd agree on who makes cgroups, whatever the document hands on.
func TestCgroupDriver(t *testing.T) {
	for name, want := range map[string]bool{"minimal.yaml": true, "bridge.json": false} {
		st := translated(t, decoded(t, name), machineOf(t))
		runtime := strings.Contains(string(golden.File(t, st, containerd.ConfigFile).Content.Data()), "SystemdCgroup = true")
		if driver := config(t, st)["cgroupDriver"] == "systemd"; driver != want || runtime != want {
			t.Errorf("%s: kubelet %v, containerd %v", name, driver, runtime)
		}
	}
}

// The bootstrap token is in no resource: it is read when it is needed, and may be
// gone afterwards.
func TestTokenIsNotInTheState(t *testing.T) {
	st := translated(t, decoded(t, "minimal.yaml"), machineOf(t))
	c := st.Lookup(desired.ClientCertificateID(kubelet.Kubeconfig)).(*desired.ClientCertificate)
	if c.TokenFile != "/etc/berth/token" || c.Token != "" {
		t.Errorf("%+v", c)
	}
	if st.Lookup(desired.FileID(kubelet.Bootstrap)) != nil {
		t.Error("a bootstrap kubeconfig would hold the token")
	}
}

// A certificate's files stay where they are: kubelet is told of them, and no key is
// read.
func TestClientCertificate(t *testing.T) {
	st := translated(t, decoded(t, "bridge.json"), machineOf(t))
	k := string(golden.File(t, st, kubelet.Kubeconfig).Content.Data())
	if !strings.Contains(k, "client-key: /etc/berth/node.key") || !strings.Contains(k, "server: https://[fd00::1]:443") {
		t.Error(k)
	}
	if st.Lookup(desired.FileID(kubelet.ClientKey)) != nil {
		t.Error("there is a second key")
	}
}

func TestMirrorsComeFirst(t *testing.T) {
	st := translated(t, decoded(t, "full.yaml"), machineOf(t))
	a := st.Lookup(desired.ArtifactID("containerd")).(*desired.Artifact)
	const rest = "containerd/containerd/releases/download/v2.1.4/containerd-2.1.4-linux-"
	if len(a.URLs) != 2 || !strings.HasPrefix(a.URLs[0], "https://mirror.example/github/"+rest) || !strings.HasPrefix(a.URLs[1], "https://github.com/"+rest) {
		t.Errorf("%q", a.URLs)
	}
	hosts := string(golden.File(t, st, containerd.HostsFile("docker.io")).Content.Data())
	if strings.Index(hosts, "mirror.example/hub") > strings.Index(hosts, "second.example") {
		t.Error(hosts)
	}
}

// A mirror that stands there again, as in a merged list, is written once: containerd reads
// no file with a table twice.
func TestMirrorTwice(t *testing.T) {
	mirror := map[string]any{"registry": "docker.io", "url": "https://mirror.example/hub"}
	doc, err := Decode(edited(t, map[string]any{"artifacts.registryMirrors": []any{mirror, mirror}}))
	if err != nil {
		t.Fatal(err)
	}
	hosts := string(golden.File(t, translated(t, doc, machineOf(t)), containerd.HostsFile("docker.io")).Content.Data())
	if strings.Count(hosts, "mirror.example") != 1 {
		t.Error(hosts)
	}
}

func TestBridge(t *testing.T) {
	st := translated(t, decoded(t, "bridge.json"), machineOf(t))
	var list struct {
		Plugins []struct {
			IPAM struct {
				Ranges [][]struct{ Subnet string }
				Routes []struct{ Dst string }
			}
		}
	}
	if err := json.Unmarshal(golden.File(t, st, cni.BridgeFile).Content.Data(), &list); err != nil {
		t.Fatal(err)
	}
	ipam := list.Plugins[0].IPAM
	if len(ipam.Ranges) != 2 || ipam.Ranges[1][0].Subnet != "fd00:1::/64" || ipam.Routes[1].Dst != "::/0" {
		t.Errorf("%+v", ipam)
	}
	u := st.Lookup(desired.UnitID(containerd.Unit)).(*desired.Unit)
	if !strings.Contains(strings.Join(u.Triggers, " "), cni.BridgeFile) {
		t.Errorf("containerd reads the network when it starts, and restarts with %q", u.Triggers)
	}
}

// TestClusterSettings: what the document says goes before what the cluster says, and
// that before the defaults; containerd has kubelet's cgroup driver.
func TestClusterSettings(t *testing.T) {
	told := &component.ClusterSettings{DNS: []string{"10.7.0.10"}, Domain: "told.example", CgroupDriver: "cgroupfs"}
	for _, tc := range []struct {
		name   string
		told   *component.ClusterSettings
		dns    any
		domain string
		driver string
		noted  bool
	}{
		{"minimal.yaml", told, []any{"10.7.0.10"}, "told.example", "cgroupfs", false},
		{"minimal.yaml", &component.ClusterSettings{DNS: []string{"10.7.0.10"}}, []any{"10.7.0.10"}, "cluster.local", "systemd", false},
		{"minimal.yaml", nil, nil, "cluster.local", "systemd", true},
		{"full.yaml", told, []any{"10.96.0.10"}, "k8s.example", "cgroupfs", false},
	} {
		f := machineOf(t)
		f.Cluster = tc.told
		st, err := Translate(decoded(t, tc.name), f)
		if err != nil {
			t.Fatal(err)
		}
		c := config(t, st)
		if diff := cmp.Diff(tc.dns, c["clusterDNS"]); diff != "" || c["clusterDomain"] != tc.domain || c["cgroupDriver"] != tc.driver {
			t.Errorf("%s with %+v: %v", tc.name, tc.told, c)
		}
		noted := slices.ContainsFunc(st.Partial, func(n desired.FieldNote) bool { return n.Path == "networking.clusterDNS" })
		if noted != tc.noted {
			t.Errorf("%s with %+v: notes %v", tc.name, tc.told, st.Partial)
		}
	}
}

// TestReferences: what is read beforehand prints no secret.
func TestReferences(t *testing.T) {
	asks := func(q component.SettingsQuestion) *component.SettingsQuestion {
		q.Kubeconfig, q.Known = kubelet.Kubeconfig, kubelet.ConfigFile
		return &q
	}
	const server, ca, token = "https://10.0.0.1:6443", "/etc/berth/ca.pem", "abcdef.0123456789abcdef"
	for name, want := range map[string]component.References{
		"minimal.yaml": {Files: []string{ca}, Settings: asks(component.SettingsQuestion{Server: server, CAFile: ca, TokenFile: "/etc/berth/token"})},
		"full.yaml": {Files: []string{ca, "/etc/berth/site.pem"}, WayCAFiles: []string{"/etc/berth/site.pem"}, Way: &desired.Egress{
			HTTPProxy: "http://proxy.example:3128", HTTPSProxy: "http://me:secret@proxy.example:3128", NoProxy: []string{".example", "10.0.0.0/8"}}},
		"bridge.json": {Files: []string{ca, "/etc/berth/node.pem"}, Settings: asks(component.SettingsQuestion{Server: "https://[fd00::1]:443", CAFile: ca})},
		"discovery.yaml": {Discovery: &component.Discovery{Server: server, Known: kubelet.CAFile, Token: token,
			Pin: decoded(t, "discovery.yaml").Config.Cluster.CACertHash}, Settings: asks(component.SettingsQuestion{Server: server, Token: token})},
	} {
		if diff := cmp.Diff(want, decoded(t, name).References()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A program that the unit of a package starts, and that is gone, comes back where the unit
// looks for it: nothing else of the state changes.
func TestLostContainerd(t *testing.T) {
	doc := decoded(t, "full.yaml")
	there := distribution(t)
	there.ContainerdStarts = "/usr/bin/containerd"
	gone := there
	gone.ContainerdPath, gone.ContainerdVersion = "", ""
	if diff := cmp.Diff(text(t, translated(t, doc, there)), text(t, translated(t, doc, gone))); diff != "" {
		t.Error(diff)
	}
}

// The API server takes none of these as the name of a Node, or kubelet's label does not.
func TestNameThatNoNodeHas(t *testing.T) {
	for _, name := range []string{"edge_7", "edge-7.", strings.Repeat("e", 64)} {
		f := machineOf(t)
		f.Hostname = name
		if _, err := Translate(decoded(t, "minimal.yaml"), f); err == nil || !strings.Contains(err.Error(), "node.name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
