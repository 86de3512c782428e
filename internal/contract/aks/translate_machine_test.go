package aks

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/azurejson"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
)

// Every field of the message has its key; the golden list is read by people who
// know the keys.
func TestSysctlKeys(t *testing.T) {
	var b strings.Builder
	fields := (&aksnodeconfigv1.SysctlConfig{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		name := string(fields.Get(i).Name())
		b.WriteString(name + " " + sysctlKey(name) + "\n")
	}
	golden.Check(t, "sysctl-keys.txt", b.String())
}

func TestSysctlValues(t *testing.T) {
	cfg := &aksnodeconfigv1.Configuration{CustomLinuxOsConfig: &aksnodeconfigv1.CustomLinuxOsConfig{SysctlConfig: &aksnodeconfigv1.SysctlConfig{
		NetIpv4TcpTwReuse: proto.Bool(true), VmSwappiness: proto.Int32(0), NetIpv4IpLocalPortRange: proto.String("32768\t\t065400"),
	}}}
	got := (&translation{cfg: cfg}).sysctls()
	want := map[string]string{
		"net.ipv4.tcp_tw_reuse": "1", "vm.swappiness": "0",
		"net.ipv4.ip_local_port_range": "32768 65400", "net.ipv4.ip_local_reserved_ports": "65330",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReservedPort(t *testing.T) {
	for ports, want := range map[string]string{
		"32768 60999": "", "32768 65330": "", "32768 65331": "65330", "": "", "a b": "",
	} {
		if got := reservedPort(ports); got != want {
			t.Errorf("%q: %q, want %q", ports, got, want)
		}
	}
}

func TestContainerdVersion(t *testing.T) {
	for name, c := range map[string]struct{ url, version, installed, want string }{
		"of the image":   {"", "1.7.29", "2.2.9", "2.2.9"},
		"of the archive": {"https://a.example/c.tar.gz", "v2.1.0", "1.7.29", "2.1.0"},
		"in its name":    {"https://a.example/containerd-static-2.0.7-linux-amd64.tar.gz#sha256=00", "", "1.7.29", "2.0.7"},
		"not known":      {"https://a.example/c.tar.gz", "", "1.7.29", ""},
		"of a package":   {"https://a.example/containerd.deb#sha256=00", "2.2.1", "1.7.29", "2.2.1"},
		"in a package's": {"https://a.example/moby-containerd_1.7.31+azure-ubuntu22.04u1_amd64.deb", "", "1.6.9", "1.7.31"},
		"Azure Linux's":  {"https://a.example/containerd2-2.0.0-14.azl3.x86_64.rpm", "", "1.7.29", "2.0.0"},
		"Docker's":       {"https://a.example/containerd.io_1.7.29-1_amd64.deb", "", "2.2.9", "1.7.29"},
		"another's":      {"https://a.example/containerdshim_1.7.29-1_amd64.deb", "", "2.2.9", ""},
		"in its path":    {"https://a.example/containerd-2.0.7.tar.gz?sig=/x", "", "1.7.29", "2.0.7"},
		"in a registry":  {"registry.example/containerd.deb:2", "2.2.1", "1.7.29", "2.2.1"},
	} {
		cfg := &aksnodeconfigv1.Configuration{ContainerdConfig: &aksnodeconfigv1.ContainerdConfig{
			ContainerdPackageUrl: c.url, ContainerdVersion: c.version}}
		tr := &translation{cfg: cfg, facts: component.Facts{ContainerdVersion: c.installed}}
		if got := tr.containerdVersion(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestSystemdCgroup(t *testing.T) {
	yes, no := proto.Bool(true), proto.Bool(false)
	for name, c := range map[string]struct {
		flag    string
		needs   *bool
		version string
		want    bool
	}{
		"flag first":       {"cgroupfs", yes, "2.2.9", false},
		"flag alone":       {"systemd", nil, "1.7.29", true},
		"contract":         {"", no, "2.2.9", false},
		"contract, old":    {"", yes, "1.7.29", true},
		"silence":          {"", nil, "2.2.9", true},
		"silence, old":     {"", nil, "1.7.29", false},
		"silence, unknown": {"", nil, "", false},
	} {
		cfg := &aksnodeconfigv1.Configuration{NeedsCgroupv2: c.needs, KubeletConfig: &aksnodeconfigv1.KubeletConfig{
			KubeletFlags: map[string]string{cgroupFlag: c.flag}}}
		tr := &translation{cfg: cfg, facts: component.Facts{ContainerdVersion: c.version}}
		if got := tr.systemdCgroup(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		timeout int32
		server  string
		want    time.Duration
	}{
		"name":           {0, "api.example", 9 * time.Minute},
		"private link":   {0, "a.privatelink.westeurope.azmk8s.io", 13 * time.Minute},
		"address":        {0, "10.0.0.1", 5 * time.Minute},
		"short":          {60, "api.example", 52 * time.Second},
		"too long":       {30000, "api.example", 9 * time.Minute},
		"long and named": {21600, "a.privatelink.westeurope.azmk8s.io", 14 * time.Minute},
	} {
		tr := &translation{cfg: &aksnodeconfigv1.Configuration{CseTimeout: proto.Int32(c.timeout)}}
		if got := tr.apiBudget(c.server); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestCredentialBudget(t *testing.T) {
	for name, c := range map[string]struct {
		timeout int32
		want    time.Duration
	}{
		"unset":                     {0, 2 * time.Minute},
		"a share":                   {300, 40 * time.Second},
		"at least one answer":       {38, 10 * time.Second},
		"less than one answer left": {9, 7800 * time.Millisecond},
	} {
		tr := &translation{cfg: &aksnodeconfigv1.Configuration{CseTimeout: proto.Int32(c.timeout)}}
		if got := tr.credentialBudget(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A prepared image holds nothing of a cluster.
func TestPreparedImage(t *testing.T) {
	st := translate(t, variants(t)["prepared image"], machine)
	for _, r := range st.Resources {
		switch r := r.(type) {
		case *desired.Check, *desired.ClientCertificate, *desired.ServingCertificate:
			t.Errorf("%s is in an image", r.ID())
		case *desired.File:
			if r.Content.IsSecret() || strings.HasPrefix(r.Path, "/etc/kubernetes/certs/") || strings.HasPrefix(r.Path, "/etc/default/") {
				t.Errorf("%s is in an image", r.Path)
			}
		case *desired.Unit:
			if r.Name == "kubelet.service" {
				t.Error("kubelet is started in an image")
			}
		}
	}
}

// Nothing that is secret in the contract can be read in the printed state.
func TestPrintedStateTellsNoSecret(t *testing.T) {
	for name, cfg := range variants(t) {
		printed := text(t, translate(t, cfg, factsOf(name)))
		for _, secret := range []string{
			"abcdef.0123456789abcdef", "sample-secret", "PRIVATE KEY",
		} {
			if strings.Contains(printed, secret) {
				t.Errorf("%s: %q is in the printed state", name, secret)
			}
		}
	}
}

// Of kubelet's flags an image can hold the cgroup driver alone: containerd has it
// too.
func TestFlagsOfAPreparedImage(t *testing.T) {
	cfg := variants(t)["prepared image"]
	cfg.KubeletConfig.KubeletFlags = map[string]string{"--v": "4", cgroupFlag: "systemd"}
	st := translate(t, cfg, machine)
	said := func(flag string) bool {
		return slices.Contains(st.Unused, desired.FieldNote{Path: "kubelet_config.kubelet_flags[" + flag + "]", Reason: noMember})
	}
	if !said("--v") || said(cgroupFlag) {
		t.Error(st.Unused)
	}
}

// The published scripts put the configuration of Azure's plugin in place; berth
// does not, and says so unless it is there.
func TestAzurePluginWithoutConfiguration(t *testing.T) {
	cfg := sample(t, "minimal.json")
	cfg.NetworkConfig = &aksnodeconfigv1.NetworkConfig{NetworkPlugin: aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_AZURE}
	for _, configured := range []bool{false, true} {
		facts := machine
		facts.CNIConfigured = configured
		isPlugin := func(n desired.FieldNote) bool { return n.Path == "network_config.network_plugin" }
		if got := slices.ContainsFunc(translate(t, cfg, facts).Partial, isPlugin); got == configured {
			t.Errorf("configured %v: in part %v", configured, got)
		}
	}
}

// With calico containerd has no template of a network: pods that start before calico
// does would stay on the bridge that it makes.
func TestKubenetWithCalico(t *testing.T) {
	for policy, bridged := range map[aksnodeconfigv1.NetworkPolicy]bool{
		aksnodeconfigv1.NetworkPolicy_NETWORK_POLICY_CALICO: false, aksnodeconfigv1.NetworkPolicy_NETWORK_POLICY_AZURE: true,
		aksnodeconfigv1.NetworkPolicy_NETWORK_POLICY_UNSPECIFIED: true,
	} {
		cfg := sample(t, "minimal.json")
		cfg.NetworkConfig = &aksnodeconfigv1.NetworkConfig{NetworkPlugin: aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_KUBENET, NetworkPolicy: policy}
		st := translate(t, cfg, machine)
		_, written := st.Lookup(desired.FileID(cni.TemplateFile)).(*desired.File)
		config := string(golden.File(t, st, containerd.ConfigFile).Content.Data())
		if named := strings.Contains(config, cni.TemplateFile); written != bridged || named != bridged {
			t.Errorf("%v: template there %v, named %v", policy, written, named)
		}
	}
}

// The file that kubelet is told of is there, though the contract has nothing for it.
func TestCustomCloudWithoutEnvironment(t *testing.T) {
	cfg := sample(t, "minimal.json")
	cfg.CustomCloudConfig = &aksnodeconfigv1.CustomCloudConfig{CustomCloudEnvName: "AksCustom"}
	st := translate(t, cfg, machine)
	if f := golden.File(t, st, azurejson.EnvironmentFile); len(f.Content.Data()) != 0 {
		t.Errorf("%q", f.Content.Data())
	}
	if flags := golden.File(t, st, kubelet.FlagsFile); !strings.Contains(string(flags.Content.Data()), azurejson.EnvironmentFile) {
		t.Errorf("%s", flags.Content.Data())
	}
}

// The order is acyclic, and kubelet comes after all that it reads.
func TestOrder(t *testing.T) {
	st := translate(t, variants(t)["full"], machine)
	after := map[desired.ID]bool{}
	var visit func(id desired.ID, path []desired.ID)
	visit = func(id desired.ID, path []desired.ID) {
		if slices.Contains(path, id) {
			t.Fatalf("%v goes in a circle", append(path, id))
		}
		after[id] = true
		for _, next := range st.Lookup(id).Order().After {
			visit(next, append(path, id))
		}
	}
	visit(desired.UnitID("kubelet.service"), nil)
	for _, id := range []desired.ID{
		"unit:containerd.service", "artifact:kubernetes", "artifact:containerd", "artifact:runc", "artifact:cni-plugins",
		"credential:/var/lib/kubelet/kubeconfig", "check:apiserver", "module:overlay", "trust:aks-custom-ca-0",
		"file:/etc/kubernetes/azure.json", "file:/etc/default/kubeletconfig.json", "sysctl:vm.overcommit_memory",
	} {
		if !after[id] {
			t.Errorf("kubelet does not wait for %s", id)
		}
	}
}

// A program that the unit of the image's package starts, and that is gone, comes back
// where the unit looks for it: nothing else of the state changes.
func TestLostContainerd(t *testing.T) {
	cfg, there := sample(t, "full.json"), machine
	there.ContainerdStarts = "/usr/bin/containerd"
	gone := there
	gone.ContainerdPath, gone.ContainerdVersion = "", ""
	want := translate(t, cfg, there)
	if diff := cmp.Diff(text(t, want), text(t, translate(t, cfg, gone))); diff != "" {
		t.Error(diff)
	}
	for _, r := range want.Resources {
		if a, ok := r.(*desired.Artifact); ok && a.Name == "containerd" && a.Files[0].Path == there.ContainerdStarts {
			return
		}
	}
	t.Error("the state has no " + there.ContainerdStarts)
}

// What the machine's keytab says is reported: nobody enters a domain twice, and none leaves
// another. It changes nothing that is done.
func TestDomainOfTheKeytab(t *testing.T) {
	cfg := sample(t, "minimal.json")
	cfg.CustomSearchDomainConfig = &aksnodeconfigv1.CustomSearchDomainConfig{DomainName: "corp.test", RealmUser: "user", RealmPassword: "word"}
	none := hash(t, translate(t, cfg, machine))
	for name, c := range map[string]struct {
		realms []string
		want   map[string]string
	}{
		"none":    {nil, map[string]string{}},
		"this":    {[]string{"CORP.TEST"}, map[string]string{"realm_user": "already", "realm_password": "already"}},
		"another": {[]string{"OTHER.TEST"}, map[string]string{"domain_name": "keys of OTHER.TEST"}},
	} {
		facts := machine
		facts.Realms = c.realms
		st := translate(t, cfg, facts)
		if hash(t, st) != none {
			t.Errorf("%s: the state is another", name)
		}
		got := map[string]string{}
		for _, n := range st.Partial {
			field, ok := strings.CutPrefix(n.Path, "custom_search_domain_config.")
			if ok && strings.Contains(n.Reason, c.want[field]) {
				got[field] = c.want[field]
			} else if ok {
				got[field] = n.Reason
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
