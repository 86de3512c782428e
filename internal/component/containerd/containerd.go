// Package containerd configures the container runtime: its configuration file,
// registry mirrors and service.
package containerd

import (
	"fmt"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/component/gates"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/unitname"
)

// Names and paths, as published.
const (
	Unit       = unitname.Containerd
	UnitFile   = "/etc/systemd/system/" + Unit
	LimitsFile = "/etc/systemd/system/" + Unit + ".d/10-limits.conf"
	ConfigFile = "/etc/containerd/config.toml"
	DropInDir  = "/etc/containerd/conf.d"
	HostsDir   = "/etc/containerd/certs.d"
	Socket     = "unix://" + paths.ContainerdSocket
)

// openFiles is what the service and, by inheritance, containers may have open.
const openFiles = "1048576"

// Settings are what differs from node to node.
type Settings struct {
	// Version is the version that will run, "2.2.9"; empty where it is not known.
	Version string
	// Program is its path.
	Program string
	// Runc is the path of runc.
	Runc string
	// VendorUnit: a package of the image brings the unit; berth writes none.
	VendorUnit bool
	// Root is the directory of images and containers; empty: containerd's own.
	Root string
	// SandboxImage is the pause image; empty: containerd's own.
	SandboxImage string
	// SystemdCgroup: systemd makes the cgroups of containers.
	SystemdCgroup bool
	// CNITemplate is the path of the template of the network configuration.
	CNITemplate string
	// Slice is the slice that the service belongs to; empty: systemd's choice.
	Slice string
	// Metrics is where containerd shows its figures, host:port; empty: nowhere.
	Metrics string
	// Client is what registries are told of who asks; empty: nothing.
	Client string
	// Kata adds the runtimes that run pods in virtual machines of their own.
	Kata bool
	// NVIDIA gives pods the machine's GPUs by NVIDIA's runtime.
	NVIDIA bool
	// Streaming: layers are read from the registry block by block, by services of the
	// image.
	Streaming bool
	// Mirrors stand in for registries.
	Mirrors []Mirror
	// After is what must be in place before the service starts.
	After []desired.ID
	// Triggers are files besides the configuration whose change restarts it.
	Triggers []string
}

// Resources are the files and the service, which comes after all of them.
func Resources(s Settings) ([]desired.Resource, error) {
	config, err := Config(s)
	if err != nil {
		return nil, fmt.Errorf("write containerd configuration: %w", err)
	}
	files := []desired.Resource{
		&desired.Directory{Path: DropInDir, Mode: 0o755},
		&desired.Directory{Path: HostsDir, Mode: 0o755},
		plain(ConfigFile, config),
		definition(s),
	}
	files = append(files, slice(s.Slice)...)
	for _, m := range s.Mirrors {
		f, err := m.file()
		if err != nil {
			return nil, fmt.Errorf("write mirror of %s: %w", m.Registry, err)
		}
		files = append(files, f)
	}
	return append(files, service(s, files)), nil
}

func service(s Settings, files []desired.Resource) desired.Resource {
	u := &desired.Unit{Name: Unit, Enablement: desired.Enabled, Activation: desired.Started,
		Triggers: append([]string{ConfigFile}, s.Triggers...), ReadAhead: s.programs()}
	u.After = append(u.After, s.After...)
	for _, f := range files {
		u.After = append(u.After, f.ID())
	}
	return u
}

// programs are what starts with the service and with the first pod. A pod waits for all three
// where the disk has yet to read them.
func (s Settings) programs() []string {
	if s.Program == "" {
		return nil
	}
	return slices.DeleteFunc([]string{s.Program, path.Join(path.Dir(s.Program), "containerd-shim-runc-v2"), s.Runc},
		func(p string) bool { return p == "" })
}

// definition is the unit, or where the image brings one the limits it needs.
func definition(s Settings) desired.Resource {
	if s.VendorUnit {
		return plain(LimitsFile, unitfile.Text(unitfile.In("Service", "LimitNOFILE", openFiles)))
	}
	return plain(UnitFile, unitText(s.Program))
}

// unitText: containerd tells systemd when its socket answers (Type=notify), so
// that kubelet, which starts after it, never finds it missing. Containers
// outlive a restart of it (KillMode=process) and have cgroups of their own
// (Delegate).
func unitText(program string) string {
	return unitfile.Text(
		unitfile.In("Unit",
			"Description", "containerd container runtime",
			"Documentation", "https://containerd.io",
			"After", "network.target local-fs.target dbus.service"),
		unitfile.In("Service",
			"Type", "notify",
			"ExecStart", program,
			"Restart", "always",
			"RestartSec", "1",
			"Delegate", "yes",
			"KillMode", "process",
			"OOMScoreAdjust", "-999",
			"LimitNOFILE", openFiles,
			"LimitNPROC", "infinity",
			"LimitCORE", "infinity",
			"TasksMax", "infinity"),
		unitfile.In("Install", "WantedBy", "multi-user.target"))
}

// Modern says whether a version is known to be of containerd's second generation.
func Modern(version string) bool { return gates.Takes(gates.ConfigV3, version) }
