package kubelet

import (
	"cmp"
	"strings"

	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/gates"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

func isUnitFile(path string) bool {
	return path == UnitFile || strings.HasPrefix(path, DropInDir+"/")
}

// The variables by which drop-ins and the flags file hand flags to the unit, as
// published: others on the node know them.
const (
	bootstrapFlags  = "KUBELET_TLS_BOOTSTRAP_FLAGS"
	configFlags     = "KUBELET_CONFIG_FILE_FLAGS"
	containerdFlags = "KUBELET_CONTAINERD_FLAGS"
	runtimeFlag     = "KUBELET_CONTAINER_RUNTIME_FLAG"
	cgroupFlags     = "KUBELET_CGROUP_FLAGS"
	contractFlags   = "KUBELET_FLAGS"
	nodeLabels      = "KUBELET_NODE_LABELS"
)

// unitFiles are the unit and the drop-ins that do not depend on the cluster.
func unitFiles(s Settings) []desired.Resource {
	out := []desired.Resource{
		plain(UnitFile, unitText()),
		dropIn("10-containerd-base-flag.conf", containerdFlags,
			"--runtime-request-timeout=15m",
			"--container-runtime-endpoint="+containerd.Socket,
			"--runtime-cgroups=/"+s.slice()+"/"+containerd.Unit),
	}
	if s.slice() != systemSlice {
		out = append(out, plain(DropInDir+"/"+containerd.SliceDropIn, containerd.SliceText(s.slice())))
	}
	if gates.Takes(gates.RuntimeKind, s.Version) {
		out = append(out, dropIn("10-container-runtime-flag.conf", runtimeFlag, gates.RuntimeKind))
	}
	if s.SystemdCgroup {
		out = append(out, dropIn("10-cgroupv2.conf", cgroupFlags, "--cgroup-driver=systemd"))
	}
	if gates.Takes(gates.Watchdog, s.Version) {
		out = append(out, plain(DropInDir+"/10-watchdog.conf", unitfile.Text(unitfile.In("Service", gates.Watchdog, "60s"))))
	}
	return out
}

const systemSlice = "system.slice"

// slice is the slice of kubelet and containerd.
func (s Settings) slice() string {
	if s.Cluster == nil {
		return systemSlice
	}
	return cmp.Or(s.ReservedSlice(), systemSlice)
}

func plain(path, text string) *desired.File {
	return &desired.File{Path: path, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}

// dropIn hands flags to the unit in a variable.
func dropIn(name, variable string, flags ...string) *desired.File {
	return plain(DropInDir+"/"+name, unitfile.Text(
		unitfile.In("Service", "Environment", unitfile.Environment(variable, unitfile.Words(flags)))))
}

// unitText: kubelet exits where containerd does not answer, so it starts after
// it, and it is back within a second where it stops all the same. Wants and not
// Requires: a restart of containerd is none of kubelet. kubelet says when it is
// up (Type=notify). Mounts that it made outlive it (KillMode=process). What the
// contract says stands last on the command line and therefore counts.
func unitText() string {
	return unitfile.Text(
		unitfile.In("Unit",
			"Description", "Kubernetes node agent",
			"Documentation", "https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/",
			"ConditionPathExists", binaries.Kubelet,
			"After", "network-online.target "+containerd.Unit,
			"Wants", "network-online.target "+containerd.Unit,
			"StartLimitIntervalSec", "0"),
		unitfile.In("Service",
			"Type", "notify",
			"EnvironmentFile", "-"+FlagsFile,
			"ExecStart", commandLine(),
			"Restart", "always",
			"RestartSec", "1",
			"KillMode", "process",
			"CPUAccounting", "yes",
			"MemoryAccounting", "yes"),
		unitfile.In("Install", "WantedBy", "multi-user.target"))
}

func commandLine() string {
	words := []string{
		binaries.Kubelet, "--enable-server", "--node-labels=${" + nodeLabels + "}", "--v=2",
		"--volume-plugin-dir=" + VolumePlugins,
	}
	for _, v := range []string{bootstrapFlags, configFlags, containerdFlags, runtimeFlag, cgroupFlags, contractFlags} {
		words = append(words, "$"+v)
	}
	return strings.Join(words, " ")
}
