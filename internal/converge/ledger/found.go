package ledger

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

// FilledByOthers are directories that kubelet, the container runtime and CNI plugins
// fill while the machine is a node, besides what berth puts there.
var FilledByOthers = []string{
	"/etc/cni/net.d", "/opt/cni/bin", "/opt/containerd", "/run/containerd", "/sys/class/net",
	VolumePlugins, "/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet",
}

// VolumePlugins is above the directory that a kubelet makes whose configuration names no
// other (volumePluginDir). Ledgers of older programs do not have it.
const VolumePlugins = "/usr/libexec/kubernetes"

// MountsFound is under what Found has the mount points that stood where kubelet and the
// runtime mount for pods: by its path alone nobody tells a disk of others from theirs.
const MountsFound = "/proc/self/mountinfo"

// FilterFound is under what Found has the tables and chains of the packet filter that
// stood, as host.FilterName prints them: CNI plugins that podman starts, and somebody's
// own kube-proxy, give theirs the names that a node's have.
const FilterFound = "/proc/net/netfilter"

// ValuesFound is under what Found has the values of SetByProxy that the kernel had, as
// "key=value".
const ValuesFound = "/proc/sys"

// SetByProxy are kernel parameters that kube-proxy sets while the machine is a node, and
// leaves so.
var SetByProxy = []string{
	"net.ipv4.conf.all.arp_announce", "net.ipv4.conf.all.arp_ignore", "net.ipv4.conf.all.route_localnet",
	"net.netfilter.nf_conntrack_tcp_be_liberal",
	"net.netfilter.nf_conntrack_tcp_timeout_close_wait", "net.netfilter.nf_conntrack_tcp_timeout_established",
}

// mountRoots begin the paths below which mount points are noted.
var mountRoots = []string{"/run/containerd/", "/run/netns/", "/var/lib/kubelet/"}

// Found is what stood in one of those directories when berth first came: whoever gives
// the machine back knows by it what came since.
type Found struct {
	// Mode and owner are those of the directory.
	Mode fs.FileMode `json:"mode"`
	UID  int         `json:"uid,omitempty"`
	GID  int         `json:"gid,omitempty"`
	// Names are what it held.
	Names []string `json:"names,omitempty"`
	// Unknown: something stood there that could not be read as a directory.
	Unknown bool `json:"unknown,omitempty"`
}

// find looks into the directories that others fill. One that is not there has no mode; what
// can't be looked into is unknown, which is no reason to end a run.
func find(h host.Host) map[string]Found {
	found := map[string]Found{MountsFound: findMounts(h), FilterFound: findFilter(h), ValuesFound: findValues(h)}
	for _, dir := range FilledByOthers {
		info, err := Lstat(h, dir)
		if err == nil && info == nil {
			found[dir] = Found{}
			continue
		}
		f := Found{Unknown: true}
		if err == nil && info.Mode.IsDir() {
			names, err := h.ReadDir(dir)
			f = Found{Mode: info.Mode, UID: info.UID, GID: info.GID, Names: names, Unknown: err != nil}
		}
		found[dir] = f
	}
	return found
}

// findMounts are the mount points of others. The table of mounts is read at once, so that
// no caller's end is waited for.
func findMounts(h host.Mounter) Found {
	mounts, err := h.Mounts(context.Background())
	f := Found{Unknown: err != nil}
	for _, m := range mounts {
		if slices.ContainsFunc(mountRoots, func(root string) bool { return strings.HasPrefix(m.Target, root) }) {
			f.Names = append(f.Names, m.Target)
		}
	}
	return f
}

// findFilter is the packet filter of others. The kernel answers at once.
func findFilter(h host.PacketFilter) Found {
	names, err := h.FilterNames(context.Background())
	f := Found{Unknown: err != nil}
	for _, n := range names {
		f.Names = append(f.Names, n.String())
	}
	slices.Sort(f.Names)
	return f
}

// findValues are kernel parameters. Those of a module that is not loaded are not there.
func findValues(h host.FS) (f Found) {
	root, err := Lstat(h, ValuesFound)
	if f.Unknown = err != nil || root == nil; f.Unknown {
		return f
	}
	for _, key := range SetByProxy {
		value, there, err := ReadFile(h, ValuesFound+"/"+strings.ReplaceAll(key, ".", "/"))
		if err != nil {
			f.Unknown = true
		}
		if there {
			f.Names = append(f.Names, key+"="+strings.TrimSpace(string(value)))
		}
	}
	return f
}
