// Package component holds what a node is made of, one folder per part: typed
// settings in, resources out. A part knows no contract and no machine; what it
// must know of the machine comes in as Facts.
package component

import "slices"

// Facts are what the desired state may depend on besides the contract. They are
// gathered before translation and are the same in every run on one machine: a
// fact that berth's own work would change is taken where berth writes nothing.
type Facts struct {
	// Hostname is the kernel's name of the machine, as it is.
	Hostname string
	// NodeIP is the address, or the IPv4 and IPv6 address with a comma between,
	// that the node registers with. Empty: kubelet chooses.
	NodeIP string
	// IPv6 says that the kernel has IPv6: /proc/sys/net/ipv6 exists.
	IPv6 bool
	// Resolved says that systemd-resolved keeps a list of name servers:
	// /run/systemd/resolve/resolv.conf exists.
	Resolved bool
	// CNIConfigured says that a network configuration is in /etc/cni/net.d. It
	// decides what is reported, and nothing that is done.
	CNIConfigured bool
	// ContainerdVersion is the version of the program at ContainerdPath, "2.2.9";
	// empty where there is none or it does not tell.
	ContainerdVersion string
	// ContainerdPath is the first of /usr/bin/containerd and
	// /usr/local/bin/containerd that exists, links resolved; empty where none does.
	ContainerdPath string
	// RuncPath is the first of /usr/bin/runc, /usr/sbin/runc, /usr/local/bin/runc
	// and /usr/local/sbin/runc that exists, links resolved; empty where none does.
	RuncPath string
	// KubectlPath is the first of /opt/bin/kubectl, /usr/local/bin/kubectl and
	// /usr/bin/kubectl that exists, links resolved; empty where none does.
	KubectlPath string
	// VersionedPrograms are the names in /opt/bin that begin with kubelet- or
	// kubectl-: images hold several versions, kubelet-1.34.2, and berth adds none.
	VersionedPrograms []string
	// Images are those of the bundles on the machine.
	Images []BundledImage
	// VendorUnits are the names of the units that the image's packages bring:
	// those in /usr/lib/systemd/system and /usr/local/lib/systemd/system (and
	// /lib/systemd/system where that is another directory), not in /etc.
	VendorUnits []string
}

// BundledImage is a container image in a bundle on the machine.
type BundledImage struct {
	// Reference is complete; Digest is "sha256:…" of its manifest or index.
	Reference, Digest string
}

// HasVersion says whether the image holds a program of a version of Kubernetes
// beside the one in place.
func (f Facts) HasVersion(program, version string) bool {
	return version != "" && slices.Contains(f.VersionedPrograms, program+"-"+version)
}

// HasVendorUnit says whether a package of the image brings a unit.
func (f Facts) HasVendorUnit(name string) bool { return slices.Contains(f.VendorUnits, name) }
