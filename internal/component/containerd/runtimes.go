package containerd

import "github.com/berth-dev/berth/internal/component/gates"

// runtimes are those beside the configuration's other settings; names, programs and
// paths are the published ones.
type runtimes struct {
	// NoAnnotations keeps from a snapshotter of which image a layer is.
	NoAnnotations *bool `toml:"disable_snapshot_annotations,omitempty"`
	// Snapshotter is another one than containerd's own choice.
	Snapshotter        string             `toml:"snapshotter,omitempty"`
	DefaultRuntimeName string             `toml:"default_runtime_name"`
	Runtimes           map[string]runtime `toml:"runtimes"`
}

type runtime struct {
	Type        string   `toml:"runtime_type"`
	Snapshotter string   `toml:"snapshotter,omitempty"`
	OwnDevices  bool     `toml:"privileged_without_host_devices,omitempty"`
	Annotations []string `toml:"pod_annotations,omitempty"`
	Options     *options `toml:"options,omitempty"`
}

type options struct {
	SystemdCgroup *bool  `toml:"SystemdCgroup,omitempty"`
	BinaryName    string `toml:"BinaryName,omitempty"`
	ConfigPath    string `toml:"ConfigPath,omitempty"`
}

// runtimesOf: the second runtime is the one of pods that are annotated as
// untrusted (io.kubernetes.cri.untrusted-workload); there is none that isolates
// them further.
func runtimesOf(s Settings) runtimes {
	runc := runtime{Type: "io.containerd.runc.v2", Options: &options{SystemdCgroup: &s.SystemdCgroup}}
	out := runtimes{DefaultRuntimeName: "runc", Runtimes: map[string]runtime{"runc": runc, "untrusted": runc}}
	if s.NVIDIA {
		useNVIDIA(&out)
	}
	if s.Kata {
		addKata(out.Runtimes, s.Version)
	}
	return out
}

// useNVIDIA makes NVIDIA's runtime, which runs runc, the one of every pod that asks for
// no other. It comes with the driver.
func useNVIDIA(to *runtimes) {
	with := *to.Runtimes["runc"].Options
	with.BinaryName = "/usr/bin/nvidia-container-runtime"
	r := runtime{Type: to.Runtimes["runc"].Type, Options: &with}
	to.DefaultRuntimeName = nvidia
	to.Runtimes[nvidia], to.Runtimes["untrusted"] = r, r
}

const nvidia = "nvidia-container-runtime"

// addKata adds the published ones. The preview's snapshotter is one of containerd's own;
// a pod that asks for a runtime whose programs or snapshotter the image lacks is refused,
// and nothing else.
func addKata(to map[string]runtime, version string) {
	const v2, defaults = "io.containerd.kata.v2", "/usr/share/defaults/kata-containers/"
	to["kata-cc"] = runtime{Type: "io.containerd.kata-cc.v2", Snapshotter: tardev, OwnDevices: true, Annotations: []string{"io.katacontainers.*"},
		Options: &options{ConfigPath: "/opt/confidential-containers/share/defaults/kata-containers/configuration-clh-snp.toml"}}
	to["kata-preview"] = runtime{Type: v2, Snapshotter: "erofs", OwnDevices: true, Options: &options{ConfigPath: defaults + "configuration-clh-templating.toml"}}
	to["kata"] = runtime{Type: v2}
	if gates.Takes(gates.KataConfig, version) {
		to["kata"] = runtime{Type: v2, Snapshotter: "overlayfs", OwnDevices: true, Options: &options{ConfigPath: defaults + "configuration.toml"}}
	}
	if gates.Takes(gates.KataCommand, version) {
		no := false
		to["katacli"] = runtime{Type: "io.containerd.runc.v1", Options: &options{BinaryName: "/usr/bin/kata-runtime", SystemdCgroup: &no}}
	}
}

// tardev is the snapshotter of confidential pods, a program of its own that must
// know of which image a layer is.
const tardev = "tardev"

// overlaybd is the snapshotter of images that are streamed, and must know of which image a
// layer is, too.
const overlaybd = "overlaybd"

type proxyPlugin struct {
	Type    string `toml:"type"`
	Address string `toml:"address"`
}

// snapshottersOf are those that are programs of their own: containerd connects to
// one when a pod needs it.
func snapshottersOf(s Settings) map[string]proxyPlugin {
	out := map[string]proxyPlugin{}
	if s.Kata {
		out[tardev] = proxyPlugin{"snapshot", "/run/containerd/tardev-snapshotter.sock"}
	}
	if s.Streaming {
		out[overlaybd] = proxyPlugin{"snapshot", "/run/overlaybd-snapshotter/overlaybd.sock"}
	}
	return out
}

// snapshotterOf is the snapshotter of every image; empty: containerd's own choice.
func snapshotterOf(s Settings) string {
	if s.Streaming {
		return overlaybd
	}
	return ""
}

// noAnnotations is the setting that lets the snapshotter know, where one needs it.
func noAnnotations(s Settings) *bool {
	if !s.Kata && !s.Streaming {
		return nil
	}
	return new(bool)
}
