package containerd

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func full(version string) Settings {
	return Settings{
		Version: version, Program: "/usr/local/bin/containerd", Root: "/mnt/containers",
		Metrics: "0.0.0.0:10257", Client: "azure/aks", SandboxImage: "registry.test/pause:1", SystemdCgroup: true, CNITemplate: "/etc/containerd/kubenet_template.conf",
	}
}

func TestConfig(t *testing.T) {
	for name, s := range map[string]Settings{
		"config-1.7.toml":     full("1.7.29"),
		"config-2.0.toml":     full("2.0.7"),
		"config-2.2.toml":     full("2.2.9"),
		"config-unknown.toml": full(""),
		"config-least.toml":   {Version: "2.2.9"},
		"kata-1.7.toml":       {Version: "1.7.29", Kata: true},
		"kata-2.2.toml":       {Version: "2.2.9", Kata: true},
		"streaming-1.7.toml":  {Version: "1.7.29", Streaming: true},
		"streaming-2.2.toml":  {Version: "2.2.9", Streaming: true},
	} {
		text, err := Config(s)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, text)
		var back map[string]any
		if err := toml.Unmarshal([]byte(text), &back); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestResources(t *testing.T) {
	s := full("2.2.9")
	s.Slice = "kubereserved.slice"
	s.Mirrors = []Mirror{{Registry: "mcr.microsoft.com", Server: "mirror.example/cache", InPath: true}, {Registry: "mcr.azk8s.cn", Server: "mcr.azure.cn"}}
	rs, err := Resources(s)
	if err != nil {
		t.Fatal(err)
	}
	st := golden.State(t, rs)
	golden.Check(t, "containerd.service", string(golden.File(t, st, UnitFile).Content.Data()))
	golden.Check(t, "hosts.toml", string(golden.File(t, st, HostsDir+"/mcr.microsoft.com/hosts.toml").Content.Data()))
	golden.Check(t, "hosts-china.toml", string(golden.File(t, st, HostsDir+"/mcr.azk8s.cn/hosts.toml").Content.Data()))
	golden.Check(t, "kubereserved.slice", string(golden.File(t, st, "/etc/systemd/system/kubereserved.slice").Content.Data()))
	golden.Check(t, "10-slice.conf", string(golden.File(t, st, UnitFile+".d/"+SliceDropIn).Content.Data()))
	u := st.Lookup(desired.UnitID(Unit)).(*desired.Unit)
	if diff := cmp.Diff([]string{ConfigFile}, u.Triggers); diff != "" {
		t.Error(diff)
	}
	for _, r := range rs[:len(rs)-1] {
		if !slices.Contains(u.After, r.ID()) {
			t.Errorf("the service does not come after %s", r.ID())
		}
	}
}

// A unit of the image is left alone; it gets a drop-in.
func TestVendorUnit(t *testing.T) {
	s := full("2.2.9")
	s.VendorUnit = true
	rs, err := Resources(s)
	if err != nil {
		t.Fatal(err)
	}
	st := golden.State(t, rs)
	if st.Lookup(desired.FileID(UnitFile)) != nil {
		t.Error("the image's unit is replaced")
	}
	golden.Check(t, "10-limits.conf", string(golden.File(t, st, LimitsFile).Content.Data()))
}

func TestMirrorURL(t *testing.T) {
	for server, want := range map[string]string{
		"acr.example":           "https://acr.example/v2/",
		"acr.example/":          "https://acr.example/v2/",
		"acr.example:5000":      "https://acr.example:5000/v2/",
		"acr.example/some/path": "https://acr.example/v2/some/path/",
	} {
		if got := (Mirror{Server: server}).url(); got != want {
			t.Errorf("%s: %s, want %s", server, got, want)
		}
	}
}
