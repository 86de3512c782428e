package containerd

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

// debian is what a distribution's package has.
const debian = `version = 2
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd"
`

const third = `version = 3
imports = ["/etc/other.toml", "/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dir = "/usr/lib/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
`

func changes(version, existing string, plugins ...PluginChange) Changes {
	systemd := true
	return Changes{Version: version, Existing: existing, SandboxImage: "registry.test/pause:1", SystemdCgroup: &systemd, Plugins: plugins}
}

func TestChanges(t *testing.T) {
	gvisor := PluginChange{Path: []string{criPlugin, "containerd"}, Values: map[string]any{
		"default_runtime_name": "gvisor", "runtimes": map[string]any{"gvisor": map[string]any{"runtime_type": "io.containerd.runsc.v1"}}}}
	remove := PluginChange{Remove: true, Path: []string{"io.containerd.internal.v1.opt"}}
	for name, c := range map[string]struct {
		changes Changes
		at      string
		block   bool
		kept    []int
		mirrors bool
	}{
		"none-2.2":    {changes("2.2.9", "", gvisor, remove), ConfigFile, false, nil, false},
		"none-1.7":    {changes("1.7.29", "", gvisor), ConfigFile, false, nil, false},
		"none-asked":  {Changes{Version: "2.2.9"}, ConfigFile, false, nil, false},
		"third-2.2":   {changes("2.2.9", third, gvisor), ChangesFile, false, nil, false},
		"debian-1.7":  {changes("1.7.29", debian, gvisor, remove), ChangesFile, true, []int{1}, false},
		"debian-2.2":  {changes("2.2.9", debian, remove), ChangesFile, true, []int{0}, false},
		"mirrors-2.2": {changes("2.2.9", third+"[plugins.\"io.containerd.cri.v1.images\".registry.mirrors]\n"), ChangesFile, false, nil, true},
		"removed-1.7": {changes("1.7.29", debian, PluginChange{Remove: true, Path: []string{criPlugin, "cni"}}), ChangesFile, true, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.changes.Apply()
			if err != nil {
				t.Fatal(err)
			}
			st := golden.State(t, got.Resources)
			text := string(golden.File(t, st, c.at).Content.Data())
			golden.Check(t, "changes-"+name+".toml", text)
			var back map[string]any
			if err := toml.Unmarshal([]byte(text), &back); err != nil {
				t.Error(err)
			}
			block := st.Lookup(desired.BlockID(ConfigFile, ImportBlock))
			if (block != nil) != c.block || slices.Contains(got.Triggers, ConfigFile) != (c.block || c.at == ConfigFile) || !slices.Contains(got.Triggers, c.at) {
				t.Errorf("block %v, triggers %v", block, got.Triggers)
			}
			if diff := cmp.Diff(c.kept, got.Kept); diff != "" || got.Mirrors != c.mirrors {
				t.Errorf("mirrors %v, kept %s", got.Mirrors, diff)
			}
		})
	}
}

// What others set of plugins may be passwords: it is not shown, and only root reads
// it.
func TestChangesArePrivate(t *testing.T) {
	const auth = `version = 2
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.grpc.v1.cri".registry.configs."registry.test".auth]
password = "hunter2"
`
	given := PluginChange{Path: []string{criPlugin, "registry", "configs"}, Values: map[string]any{"registry.test": map[string]any{"auth": map[string]any{"password": "hunter2"}}}}
	for name, c := range map[string]struct {
		changes Changes
		at      string
		private bool
	}{
		"copied, 1.7":         {changes("1.7.29", auth), ChangesFile, true},
		"copied, not known":   {changes("", auth), ChangesFile, true},
		"merged, 2.2":         {changes("2.2.9", auth), ChangesFile, false},
		"given, 2.2":          {changes("2.2.9", third, given), ChangesFile, true},
		"given, and no other": {changes("2.2.9", "", given), ConfigFile, true},
		"berth's own alone":   {changes("1.7.29", "", PluginChange{Path: []string{"a"}, Remove: true}), ConfigFile, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.changes.Apply()
			if err != nil {
				t.Fatal(err)
			}
			f := golden.File(t, golden.State(t, got.Resources), c.at)
			mode := desired.Mode(0o644)
			if c.private {
				mode = 0o600
			}
			if f.Mode != mode || f.Content.IsSecret() != c.private || strings.Contains(string(f.Content.Data()), "hunter2") != c.private {
				t.Errorf("%s, secret %v:\n%s", f.Mode, f.Content.IsSecret(), f.Content.Data())
			}
		})
	}
}

// containerd takes one of the two settings, and bin_dirs is of a version that has it.
func TestDirectoriesOfOthers(t *testing.T) {
	got, err := changes("", strings.Replace(third, `bin_dir = "/usr/lib/cni"`, `bin_dirs = ["/usr/lib/cni"]`, 1)).Apply()
	if err != nil {
		t.Fatal(err)
	}
	text := string(golden.File(t, golden.State(t, got.Resources), ChangesFile).Content.Data())
	if !strings.Contains(text, "bin_dirs = ['/opt/cni/bin']") || strings.Contains(text, "bin_dir =") {
		t.Error(text)
	}
}

func TestChangesCanNotBe(t *testing.T) {
	for text, want := range map[string]string{"[": ConfigFile, `imports = ["/etc/x/*.toml"]`: "add that to its imports"} {
		if _, err := changes("2.2.9", text).Apply(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What is written is what the reader makes of it, in the same order.
func TestRegistryFile(t *testing.T) {
	f, err := Registry{Name: "docker.io", Server: "https://registry-1.docker.io", Hosts: []RegistryHost{
		{URL: "https://z.example:5000", Capabilities: []string{"pull"}, CAs: []string{"/ca.pem"}},
		{URL: "http://a.example/x", Capabilities: []string{"pull", "resolve"}, OverridePath: true},
		{URL: "https://z.example:5000", Capabilities: []string{"pull"}, CAs: []string{"/ca.pem"}}, // twice is as good as once
	}}.File("")
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.ParseHosts(f.Content.Data(), "/d")
	want := []remote.Host{
		{Base: "https://z.example:5000/v2", Pulls: true, CAs: []string{"/ca.pem"}},
		{Base: "http://a.example/x", Pulls: true, Resolves: true},
		{Base: "https://registry-1.docker.io/v2", Pulls: true, Resolves: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || f.Path != HostsDir+"/docker.io/hosts.toml" {
		t.Errorf("%v %s\n%s", err, diff, f.Content)
	}
}

// former is what the published agent makes of a configuration, and formerPath its
// drop-in.
const (
	former = `version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins]
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "registry.test/pause:1"
[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/opt/cni/bin"]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.gvisor]
runtime_type = "io.containerd.runsc.v1"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = true
`
	formerPath = "[Service]\nEnvironment=\"PATH=/var/bin/containerruntimes:/usr/local/bin:/usr/bin:/bin\"\n"
)

// What another agent has written says the same: it stays as it is, and no service is
// restarted for it.
func TestChangesThatAreThere(t *testing.T) {
	gvisor := PluginChange{Path: []string{criPlugin, "containerd", "runtimes", "gvisor"}, Values: map[string]any{"runtime_type": "io.containerd.runsc.v1"}}
	gone := PluginChange{Remove: true, Path: []string{"io.containerd.internal.v1.opt", "x"}}
	for name, c := range map[string]struct {
		changes Changes
		said    bool
	}{
		"all":                 {changes("2.2.9", former, gvisor, gone), true},
		"whole tables":        {changes("", former, gvisor), true},
		"another image":       {changes("2.2.9", strings.Replace(former, "pause:1", "pause:2", 1), gvisor), false},
		"other cgroups":       {changes("2.2.9", strings.Replace(former, "= true", "= false", 1), gvisor), false},
		"another runtime":     {changes("2.2.9", strings.Replace(former, "runsc", "kata", 1), gvisor), false},
		"one that is to go":   {changes("", former, PluginChange{Remove: true, Path: []string{criPlugin, "containerd", "runtimes", "gvisor"}}), false},
		"berth's own":         {changes("2.2.9", header+former, gvisor), false},
		"a part":              {changes("2.2.9", third), false},
		"nothing":             {changes("2.2.9", ""), false},
		"the import is a lie": {changes("2.2.9", strings.Replace(former, "conf.d/*.toml", "conf.d/x.toml", 1), gvisor), true},
	} {
		t.Run(name, func(t *testing.T) {
			c.changes.PathDropIn = formerPath
			got, err := c.changes.Apply()
			if err != nil {
				t.Fatal(err)
			}
			st := golden.State(t, got.Resources)
			if said := len(got.Resources) == 1 && len(got.Triggers) == 0; said != c.said {
				t.Errorf("%d files, triggers %v", len(got.Resources), got.Triggers)
			}
			if f := golden.File(t, st, PathDropIn); string(f.Content.Data()) != formerPath || f.Mode != 0o600 {
				t.Errorf("%v %q", f.Mode, f.Content.Data())
			}
		})
	}
}

func TestPathDropIn(t *testing.T) {
	own, err := Changes{}.Apply()
	if err != nil {
		t.Fatal(err)
	}
	text := string(golden.File(t, golden.State(t, own.Resources), PathDropIn).Content.Data())
	for there, stays := range map[string]bool{
		"": false, text: true, formerPath: true,
		strings.Replace(formerPath, "/var/bin/containerruntimes:", "", 1):       false,
		formerPath + "ExecStart=/bin/false\n":                                   false,
		"[Service]\nEnvironment=\"PATH=/var/bin/containerruntimes:/bin\" A=b\n": false,
		"[Service]\nUser=PATH=/var/bin/containerruntimes:/bin\n":                false,
	} {
		got, err := Changes{PathDropIn: there}.Apply()
		if err != nil {
			t.Fatal(err)
		}
		is := string(golden.File(t, golden.State(t, got.Resources), PathDropIn).Content.Data())
		if (is == there) != stays || !stays && is != text {
			t.Errorf("of %q became %q", there, is)
		}
	}
}

// The hosts of a registry, in another writer's words.
func TestHostsThatAreThere(t *testing.T) {
	r := Registry{Name: "a.b", Server: "https://a.b", Hosts: []RegistryHost{
		{URL: "https://one", Capabilities: []string{"pull", "resolve"}, CAs: []string{"/ca.pem"}},
		{URL: "https://two", Capabilities: []string{"pull"}, OverridePath: true}}}
	const one, two = "[host.\"https://one\"]\n  capabilities = [\"pull\",\"resolve\"]\n  ca = [\"/ca.pem\"]\n", "[host.\"https://two\"]\n  capabilities = [\"pull\"]\n  override_path = true\n"
	const head = "# managed by gardener-node-agent\nserver = \"https://a.b\"\n\n"
	own, err := r.File("")
	if err != nil {
		t.Fatal(err)
	}
	for there, stays := range map[string]bool{
		head + one + "\n" + two: true,
		head + two + "\n" + one: false, // they are asked in another order
		head + one:              false,
		head + one + two + "[host.\"https://three\"]\n":    false,
		strings.Replace(head, "a.b", "c.d", 1) + one + two: false,
		"[": false,
	} {
		f, err := r.File(there)
		if err != nil {
			t.Fatal(err)
		}
		if is := string(f.Content.Data()); (is == there) != stays || !stays && is != string(own.Content.Data()) {
			t.Errorf("of %q became %q", there, is)
		}
	}
}
