package containerd

import (
	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/gates"
)

// Config is the text of config.toml: version 3 for containerd 2, version 2 for
// containerd 1 and where the version is not known, since containerd 2 reads
// version 2 as well.
func Config(s Settings) (string, error) {
	var file any = configV2(s)
	if Modern(s.Version) {
		file = configV3(s)
	}
	b, err := toml.Marshal(file)
	return header + string(b), err
}

const header = "# Written by berth. Settings of your own go into " + DropInDir + "/*.toml.\n"

type common struct {
	Version int      `toml:"version"`
	Root    string   `toml:"root,omitempty"`
	Imports []string `toml:"imports"`
	Metrics *metrics `toml:"metrics,omitempty"`
	// Proxies are plugins that are programs of their own.
	Proxies map[string]proxyPlugin `toml:"proxy_plugins,omitempty"`
}

type metrics struct {
	Address string `toml:"address"`
}

func commonOf(s Settings, version int) common {
	c := common{Version: version, Root: s.Root, Imports: []string{DropInDir + "/*.toml"}, Proxies: snapshottersOf(s)}
	if s.Metrics != "" {
		c.Metrics = &metrics{s.Metrics}
	}
	return c
}

type network struct {
	BinDir       string   `toml:"bin_dir,omitempty"`
	BinDirs      []string `toml:"bin_dirs,omitempty"`
	ConfDir      string   `toml:"conf_dir"`
	ConfTemplate string   `toml:"conf_template,omitempty"`
}

func networkOf(s Settings) network {
	n := network{ConfDir: cni.ConfDir, ConfTemplate: s.CNITemplate}
	if gates.Takes(gates.ManyPluginDirs, s.Version) {
		n.BinDirs = []string{cni.BinDir}
	} else {
		n.BinDir = cni.BinDir
	}
	return n
}

type registry struct {
	ConfigPath string              `toml:"config_path"`
	Headers    map[string][]string `toml:"headers,omitempty"`
}

// registriesOf are told who asks, as published.
func registriesOf(s Settings) registry {
	r := registry{ConfigPath: HostsDir}
	if s.Client != "" {
		r.Headers = map[string][]string{"X-Meta-Source-Client": {s.Client}}
	}
	return r
}

type fileV2 struct {
	common
	Plugins struct {
		CRI criV2 `toml:"io.containerd.grpc.v1.cri"`
	} `toml:"plugins"`
}

type criV2 struct {
	SandboxImage string   `toml:"sandbox_image,omitempty"`
	EnableCDI    bool     `toml:"enable_cdi,omitempty"`
	Containerd   runtimes `toml:"containerd"`
	CNI          network  `toml:"cni"`
	Registry     registry `toml:"registry"`
}

func configV2(s Settings) fileV2 {
	f := fileV2{common: commonOf(s, 2)}
	f.Plugins.CRI = criV2{
		SandboxImage: s.SandboxImage, Containerd: runtimesOf(s), CNI: networkOf(s), Registry: registriesOf(s),
		EnableCDI: gates.Takes(gates.CDI, s.Version),
	}
	f.Plugins.CRI.Containerd.NoAnnotations, f.Plugins.CRI.Containerd.Snapshotter = noAnnotations(s), snapshotterOf(s)
	return f
}

type fileV3 struct {
	common
	Plugins struct {
		Images  imagesV3  `toml:"io.containerd.cri.v1.images"`
		Runtime runtimeV3 `toml:"io.containerd.cri.v1.runtime"`
	} `toml:"plugins"`
}

type imagesV3 struct {
	NoAnnotations *bool             `toml:"disable_snapshot_annotations,omitempty"`
	Snapshotter   string            `toml:"snapshotter,omitempty"`
	PinnedImages  map[string]string `toml:"pinned_images,omitempty"`
	Registry      registry          `toml:"registry"`
}

type runtimeV3 struct {
	Containerd runtimes `toml:"containerd"`
	CNI        network  `toml:"cni"`
}

func configV3(s Settings) fileV3 {
	f := fileV3{common: commonOf(s, 3)}
	f.Plugins.Images.Registry, f.Plugins.Images.NoAnnotations, f.Plugins.Images.Snapshotter = registriesOf(s), noAnnotations(s), snapshotterOf(s)
	if s.SandboxImage != "" {
		f.Plugins.Images.PinnedImages = map[string]string{"sandbox": s.SandboxImage}
	}
	f.Plugins.Runtime = runtimeV3{Containerd: runtimesOf(s), CNI: networkOf(s)}
	return f
}
