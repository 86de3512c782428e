// Package kubelet runs the node agent: its service, flags, configuration file,
// certificates and first credential.
package kubelet

import (
	"encoding/json"

	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/gates"
	"github.com/berth-dev/berth/internal/desired"
)

// Names and paths, as published.
const (
	Unit          = "kubelet.service"
	UnitFile      = "/etc/systemd/system/" + Unit
	DropInDir     = "/etc/systemd/system/" + Unit + ".d"
	FlagsFile     = "/etc/default/kubelet"
	ConfigFile    = "/etc/default/kubeletconfig.json"
	ConfigDir     = "/etc/kubernetes/kubelet.conf.d"
	CAFile        = "/etc/kubernetes/certs/ca.crt"
	APIServerFile = "/etc/kubernetes/certs/apiserver.crt"
	ClientCert    = "/etc/kubernetes/certs/client.crt"
	ClientKey     = "/etc/kubernetes/certs/client.key"
	Kubeconfig    = "/var/lib/kubelet/kubeconfig"
	// AgentKubeconfig is where kubelet keeps its own under gardener-node-agent, whose
	// directories the agent keeps.
	AgentKubeconfig = "/var/lib/kubelet/kubeconfig-real"
	Bootstrap       = "/var/lib/kubelet/bootstrap-kubeconfig"
	CertDir         = "/var/lib/kubelet/pki"
	ManifestDir     = "/etc/kubernetes/manifests"
	VolumePlugins   = "/etc/kubernetes/volumeplugins"
)

// Settings are what differs from node to node.
type Settings struct {
	// Version is kubelet's, "1.36.3".
	Version string
	// Flags are names with their dashes, and values. They go before everything
	// that berth adds.
	Flags map[string]string
	// Labels are what the node registers with.
	Labels map[string]string
	// Rotation is what the contract says of serving certificates, whatever kubelet
	// ends up with: the node's label tells it, and then kubelet is given none.
	Rotation bool
	// Config is a KubeletConfiguration in JSON; nil: flags carry the settings, or
	// name a file of the image.
	Config json.RawMessage
	// SystemdCgroup: systemd makes the cgroups of pods; containerd must agree.
	SystemdCgroup bool
	// Hostname and NodeIP are as in component.Facts.
	Hostname, NodeIP string
	// Variables go into the flags file besides flags and labels.
	Variables map[string]string
	// Cluster is the cluster to join; nil prepares an image: the service is there
	// but neither configured nor started.
	Cluster *Cluster
	// Program is where the link at kubelet's path leads; empty: there is none.
	Program string
	// After is what must be in place before the service starts.
	After []desired.ID
	// Triggers are files besides kubelet's own whose change restarts it.
	Triggers []string
}

// Resources are everything that kubelet needs, and its service after all of it.
func Resources(s Settings) ([]desired.Resource, error) {
	out := append(directories(s), unitFiles(s)...)
	if s.Cluster == nil {
		return out, nil
	}
	for _, part := range []func(Settings) ([]desired.Resource, error){flagsFile, configFile, certificates, credential} {
		rs, err := part(s)
		if err != nil {
			return nil, err
		}
		out = append(out, rs...)
	}
	out = append(out, service(s, out))
	if n := s.nodeObject(); n != nil {
		out = append(out, n)
	}
	return out, nil
}

// directories are those that kubelet expects or is told of.
func directories(s Settings) []desired.Resource {
	out := []desired.Resource{
		&desired.Directory{Path: ManifestDir, Mode: 0o755},
		&desired.Directory{Path: VolumePlugins, Mode: 0o755},
		&desired.Directory{Path: "/var/lib/kubelet", Mode: 0o755},
	}
	if s.readsConfigDir() {
		out = append(out, &desired.Directory{Path: ConfigDir, Mode: 0o755})
	}
	return out
}

// readsConfigDir: kubelet merges a directory of files of others from 1.30 on.
func (s Settings) readsConfigDir() bool {
	return s.Cluster != nil && s.Config != nil && gates.Takes(gates.ConfigDirFlag, s.Version) && s.Flags[gates.ConfigDirFlag] == ""
}

// service follows all resources of its own and what the caller names.
func service(s Settings, own []desired.Resource) desired.Resource {
	u := &desired.Unit{Name: Unit, Enablement: desired.Enabled, Activation: desired.Started, Unread: registrationOnly()}
	u.After = append(u.After, s.After...)
	for _, r := range own {
		u.After = append(u.After, r.ID())
		if f, ok := r.(*desired.File); ok && restarts(f) {
			u.Triggers = append(u.Triggers, f.Path)
		}
	}
	u.Triggers = append(append(u.Triggers, binaries.Kubelet), s.Triggers...)
	if s.Program != "" {
		u.Triggers = append(u.Triggers, s.Program)
	}
	return u
}

// restarts: kubelet reads these files once. Unit files count anyway, and a
// bootstrap kubeconfig that comes or goes changes nothing for a kubelet that runs.
func restarts(f *desired.File) bool {
	return f.Life == desired.Managed && !isUnitFile(f.Path) && f.Path != APIServerFile
}
