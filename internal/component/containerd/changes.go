package containerd

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/internal/component/gates"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// Names and paths of what changes a configuration.
const (
	// ChangesFile is the drop-in beside a configuration of others.
	ChangesFile = DropInDir + "/90-operatingsystemconfig.toml"
	// PathDropIn gives the service programs of runtimes, as published.
	PathDropIn = UnitFile + ".d/30-env_config.conf"
	// ChangesHeader begins the configuration where there is no other.
	ChangesHeader = "# Written by berth for an OperatingSystemConfig. Settings of your own go into " + DropInDir + "/*.toml.\n"
	// ImportBlock is the block that has a configuration read drop-ins.
	ImportBlock = "imports"
)

// servicePath is systemd's own for services, after the directory in which
// extensions install runtimes.
const (
	runtimesDir = "/var/bin/containerruntimes"
	servicePath = runtimesDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Changes are what a contract changes of containerd's configuration, whoever
// wrote that.
type Changes struct {
	// Version is that of containerd, "2.2.9"; empty where it is not known.
	Version string
	// Existing is the configuration that is there; empty: none, and one is written.
	Existing string
	// PathDropIn is the text of that file as it is there; empty: there is none.
	PathDropIn string
	// SandboxImage is the pause image; empty: as it is.
	SandboxImage string
	// SystemdCgroup says whether systemd makes the cgroups of containers; nil: as it
	// is.
	SystemdCgroup *bool
	Plugins       []PluginChange
}

// PluginChange sets members of a plugin's table, or takes the table away.
type PluginChange struct {
	// Path begins with the plugin's name, as in version 2 or the one that is there.
	Path   []string
	Remove bool
	Values map[string]any
}

// Changed is what comes of changes.
type Changed struct {
	Resources []desired.Resource
	// Triggers are the files whose change restarts the service.
	Triggers []string
	// Kept are the plugin changes, by index, that ask for the end of what is not
	// berth's to take away.
	Kept []int
	// Mirrors: the configuration that is there names mirrors itself, and containerd
	// then reads no hosts.toml.
	Mirrors bool
}

// Apply says which files make the changes.
func (c Changes) Apply() (*Changed, error) {
	e := &editor{Changes: c, plugins: map[string]any{}}
	if err := toml.Unmarshal([]byte(c.Existing), &e.existing); err != nil {
		return nil, fmt.Errorf("read %s: %w", ConfigFile, err)
	}
	e.version = e.chooseVersion()
	e.settings()
	e.plugin()
	e.out.Resources = append(e.out.Resources, e.pathDropIn())
	if e.said() {
		return &e.out, nil
	}
	at, err := e.changesFile()
	if err != nil {
		return nil, err
	}
	b, err := toml.Marshal(e.file(at))
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", at, err)
	}
	head := "# Written by berth for an OperatingSystemConfig.\n"
	if at == ConfigFile {
		head = ChangesHeader
	}
	e.out.Resources = append(e.out.Resources, e.configuration(at, head+string(b)))
	e.out.Triggers = append(e.out.Triggers, at)
	return &e.out, nil
}

// editor makes the text of the changes.
type editor struct {
	Changes
	existing map[string]any
	version  int64
	plugins  map[string]any
	// private: what is written holds plugin settings of others, of which some are
	// passwords of registries.
	private bool
	out     Changed
}

// pathDropIn is the service's path. Another agent's, which has its own path after the
// directory of runtimes, stays: another text would restart the service for nothing.
func (e *editor) pathDropIn() *desired.File {
	text := unitfile.Text(unitfile.In("Service", "Environment", unitfile.Environment("PATH", servicePath)))
	if isPathDropIn(e.PathDropIn) {
		text = e.PathDropIn
	}
	f := plain(PathDropIn, text)
	f.Mode = 0o600 // as published, like all drop-ins of a document
	return f
}

func isPathDropIn(text string) bool {
	all, err := unit.DeserializeOptions(strings.NewReader(text))
	if err != nil || len(all) != 1 || all[0].Section != "Service" || all[0].Name != "Environment" {
		return false
	}
	rest, ok := strings.CutPrefix(strings.Trim(all[0].Value, `"`), "PATH="+runtimesDir+":")
	return ok && !strings.ContainsAny(rest, " \t\"'\\%")
}

// said says whether a configuration of others says all of it already: the agent that
// kept the machine before wrote it into that. berth's own for another contract may come
// to say something else.
func (e *editor) said() bool {
	if e.Existing == "" || strings.HasPrefix(e.Existing, header) {
		return false
	}
	b, err := toml.Marshal(map[string]any{"plugins": e.plugins})
	var want map[string]any
	if err != nil || toml.Unmarshal(b, &want) != nil {
		return false
	}
	have, _ := e.existing["plugins"].(map[string]any)
	plugins, _ := want["plugins"].(map[string]any)
	for name, settings := range plugins {
		if !within(settings, have[name]) || !e.merges() && !within(have[name], settings) {
			return false
		}
	}
	return true
}

// within says whether a value has all that another has.
func within(value, of any) bool {
	table, ok := value.(map[string]any)
	if !ok {
		return reflect.DeepEqual(value, of)
	}
	have, _ := of.(map[string]any)
	for name, inner := range table {
		if !within(inner, have[name]) {
			return false
		}
	}
	return true
}

// configuration is the file with the changes: containerd reads it as root.
func (e *editor) configuration(at, text string) *desired.File {
	f := plain(at, text)
	if e.private {
		f.Content, f.Mode = desired.SecretBytes([]byte(text)), 0o600
	}
	return f
}

// chooseVersion is that of the configuration that is there: containerd reads all
// files as of one version.
func (e *editor) chooseVersion() int64 {
	have, _ := e.existing["version"].(int64)
	switch {
	case e.Existing != "":
		return max(have, 2)
	case Modern(e.Version):
		return 3
	}
	return 2
}

// merges says that containerd puts the tables of a drop-in into those that are
// there, member by member.
func (e *editor) merges() bool { return gates.Takes(gates.MergedDropIns, e.Version) }

func (e *editor) file(at string) map[string]any {
	out := map[string]any{"version": e.version, "plugins": e.plugins}
	if at == ConfigFile {
		out["imports"] = []string{DropInDir + "/*.toml"}
	}
	return out
}

// changesFile is the path of the file for the changes.
func (e *editor) changesFile() (string, error) {
	if e.Existing == "" {
		return ConfigFile, nil
	}
	imports, there := e.existing["imports"].([]any)
	for _, one := range imports {
		if ok, err := path.Match(fmt.Sprint(one), ChangesFile); ok && err == nil {
			return ChangesFile, nil
		}
	}
	if there {
		return "", fmt.Errorf("%s imports other files than %s/*.toml: add that to its imports", ConfigFile, DropInDir)
	}
	e.out.Resources = append(e.out.Resources, &desired.Block{
		Path: ConfigFile, Name: ImportBlock, First: true, Mode: 0o644,
		Lines: fmt.Sprintf("imports = [%q]\n", DropInDir+"/*.toml")})
	e.out.Triggers = append(e.out.Triggers, ConfigFile)
	return ChangesFile, nil
}

// table is the table at a path of the changes, made where it is not there. Where
// containerd would lose the rest of a plugin's table, that comes along.
func (e *editor) table(at ...string) map[string]any {
	if _, ok := e.plugins[at[0]]; !ok {
		e.plugins[at[0]] = map[string]any{}
		if have := e.had(at[0]); have != nil && !e.merges() {
			e.plugins[at[0]], e.private = copied(have), true
		}
	}
	t := e.plugins
	for _, name := range at {
		inner, ok := t[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			t[name] = inner
		}
		t = inner
	}
	return t
}

// had is the table at a path of the configuration that is there, or nil.
func (e *editor) had(at ...string) map[string]any {
	t, _ := e.existing["plugins"].(map[string]any)
	for _, name := range at {
		t, _ = t[name].(map[string]any)
	}
	return t
}

func copied(t map[string]any) map[string]any {
	out := maps.Clone(t)
	for name, v := range out {
		if inner, ok := v.(map[string]any); ok {
			out[name] = copied(inner)
		}
	}
	return out
}

// The plugins behind CRI.
const (
	criPlugin     = "io.containerd.grpc.v1.cri"
	imagesPlugin  = "io.containerd.cri.v1.images"
	runtimePlugin = "io.containerd.cri.v1.runtime"
)

// settings are those that are no plugin change.
func (e *editor) settings() {
	images, runtime := criPlugin, criPlugin
	if e.version >= 3 {
		images, runtime = imagesPlugin, runtimePlugin
	}
	if had := e.had(images, "registry"); had["mirrors"] != nil || had["configs"] != nil {
		e.out.Mirrors = true
	} else {
		e.table(images, "registry")["config_path"] = HostsDir
	}
	switch {
	case e.SandboxImage == "":
	case e.version >= 3:
		e.table(images, "pinned_images")["sandbox"] = e.SandboxImage
	default:
		e.table(images)["sandbox_image"] = e.SandboxImage
	}
	e.cni(runtime)
	if e.SystemdCgroup != nil {
		e.cgroups(runtime)
	}
}

// cni: the single directory of plugins is deprecated where there may be several,
// and only one of the two settings may be there.
func (e *editor) cni(runtime string) {
	const dir = "/opt/cni/bin"
	t := e.table(runtime, "cni")
	had := e.had(runtime, "cni")
	if had["bin_dirs"] != nil || e.version >= 3 && gates.Takes(gates.ManyPluginDirs, e.Version) && had["bin_dir"] == nil {
		t["bin_dirs"] = []string{dir}
		return
	}
	t["bin_dir"] = dir
}

// cgroups: a runtime that has an entry at all has none of containerd's defaults.
func (e *editor) cgroups(runtime string) {
	at := []string{runtime, "containerd", "runtimes", "runc"}
	if e.had(at...)["runtime_type"] == nil {
		e.table(at...)["runtime_type"] = "io.containerd.runc.v2"
	}
	e.table(append(at, "options")...)["SystemdCgroup"] = *e.SystemdCgroup
}

// plugin makes the plugin changes, in order.
func (e *editor) plugin() {
	for i, p := range e.Plugins {
		at := e.named(p.Path)
		if !p.Remove {
			set(e.table(at...), p.Values)
			e.private = e.private || len(p.Values) > 0
			continue
		}
		if e.had(at...) != nil && (e.merges() || len(at) == 1) {
			e.out.Kept = append(e.out.Kept, i)
		}
		if len(at) > 1 {
			delete(e.table(at[:len(at)-1]...), at[len(at)-1])
		} else {
			delete(e.plugins, at[0])
		}
	}
}

// set puts members into a table; those of a table in both come together.
func set(into, values map[string]any) {
	for name, v := range values {
		inner, ok := v.(map[string]any)
		have, there := into[name].(map[string]any)
		if ok && there {
			set(have, inner)
			continue
		}
		into[name] = v
	}
}

// named is a path with the plugin's name in the version that is written: documents
// speak of CRI by its name in version 2.
func (e *editor) named(at []string) []string {
	if e.version < 3 || at[0] != criPlugin || len(at) < 2 {
		return at
	}
	switch {
	case slices.Contains([]string{"containerd", "cni"}, at[1]):
		return append([]string{runtimePlugin}, at[1:]...)
	case slices.Contains([]string{"registry", "image_decryption"}, at[1]):
		return append([]string{imagesPlugin}, at[1:]...)
	}
	return at
}
