// Package component holds what a node is made of, one folder per part: typed
// settings in, resources out. A part knows no contract and no machine; what it
// must know of the machine comes in as Facts.
package component

import (
	"cmp"
	"net/netip"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/paths"
)

// ContainerdPaths are where containerd's program may be.
var ContainerdPaths = []string{"/usr/bin/containerd", "/usr/local/bin/containerd"}

// Facts are what the desired state may depend on besides the contract. They are
// gathered before translation and are the same in every run on one machine: a
// fact that berth's own work would change is taken where berth writes nothing.
type Facts struct {
	// Hostname is the kernel's name of the machine, as it is.
	Hostname string
	// Arch is the architecture of the machine's programs, as GOARCH; "" is that of this
	// program. Architecture tells which that is.
	Arch string `json:",omitempty"`
	// NodeIP is the address, or the IPv4 and IPv6 address with a comma between,
	// that the node registers with. Empty: kubelet chooses.
	NodeIP string
	// Interfaces are the hardware addresses of the network interfaces of a virtual machine,
	// in the cloud's order, "00:0d:3a:00:00:01"; the first is empty where the cloud does not
	// tell and the others are those of the last run. None: nothing is known.
	Interfaces []string `json:",omitempty"`
	// RotationOff says that a tag of the virtual machine takes kubelet's serving
	// certificate out of the cluster's hands, whatever the contract says.
	RotationOff bool
	// FromPackages says that a tag of the virtual machine has kubelet and kubectl come from
	// the image's packages, although the contract names an archive.
	FromPackages bool `json:",omitempty"`
	// SkipGPU says that a tag of the virtual machine leaves drivers of GPUs to others.
	SkipGPU bool `json:",omitempty"`
	// ManageGPU says that a tag of the virtual machine has services for GPUs run.
	ManageGPU bool `json:",omitempty"`
	// APIServer is the address of a private cluster's API server: a tag of the virtual
	// machine names it, or else it is the one that /etc/hosts has of berth; the zero one
	// is not known.
	APIServer netip.Addr `json:",omitzero"`
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
	// ContainerdPath is the first of ContainerdPaths that exists, links resolved; empty
	// where none does. Where ContainerdStarts is set, no other counts.
	ContainerdPath string
	// ContainerdStarts is the path of containerd that the unit of the image's package
	// starts, whether it exists or not, links resolved; empty where there is no such unit,
	// or it starts another program.
	ContainerdStarts string `json:",omitempty"`
	// RuncPath is the first of /usr/bin/runc, /usr/sbin/runc, /usr/local/bin/runc
	// and /usr/local/sbin/runc that exists, links resolved; empty where none does.
	RuncPath string
	// Program is where the program itself is on the machine; empty where nothing
	// tells.
	Program string
	// KubectlPath is the first of /opt/bin/kubectl, /usr/local/bin/kubectl and
	// /usr/bin/kubectl that exists, links resolved; empty where none does.
	KubectlPath string
	// VersionedPrograms are the names in /opt/bin that begin with kubelet- or
	// kubectl-: images hold several versions, kubelet-1.34.2, and berth adds none.
	VersionedPrograms []string
	// Packages are the packages of kubelet, kubectl and the credential provider that the
	// image holds without having installed them: files in /opt/PROGRAM/downloads.
	Packages []string
	// ImageUnits are the units that the image brings and does not start: of those that berth
	// knows by name, wherever their definition is, without those that are masked.
	ImageUnits []string `json:",omitempty"`
	// StreamingSetup is the program of the image that has containerd ask registries through
	// the mirror of artifact streaming; empty where the image has none.
	StreamingSetup string `json:",omitempty"`
	// SSHServer is the first of /usr/sbin/sshd, /usr/bin/sshd and
	// /usr/local/sbin/sshd that exists; empty where none does.
	SSHServer string
	// SSHIncludes says that /etc/ssh/sshd_config includes
	// /etc/ssh/sshd_config.d/*.conf before it says anything itself.
	SSHIncludes bool
	// IPTables is the first of /usr/sbin/iptables and /sbin/iptables that exists;
	// empty where neither does.
	IPTables string
	// Apt says that the machine has apt: /etc/apt/apt.conf.d exists.
	Apt bool
	// Ubuntu is the code name of the release, "noble", where the distribution is Ubuntu.
	Ubuntu string `json:",omitempty"`
	// Kernel is the release of the kernel that runs; Distribution, Release and Variant are
	// ID, VERSION_ID and VARIANT_ID of os-release, in lower case. Empty where nothing tells.
	Kernel                         string `json:",omitempty"`
	Distribution, Release, Variant string `json:",omitempty"`
	// ResourceDisk is where the resource disk of an Azure machine is mounted, of which all
	// has ResourceDiskBytes; empty where there is none.
	ResourceDisk      string
	ResourceDiskBytes int64
	// SwapUnits are the units of swap areas that are in use, and those that are masked.
	SwapUnits []string `json:",omitempty"`
	// Realms are the domains that the machine is in: its keytab says so. They decide what
	// is reported, and nothing that is done.
	Realms []string `json:",omitempty"`
	// Images are those of the bundles on the machine.
	Images []BundledImage
	// VendorUnits are the names of the units that the image's packages bring:
	// those in /usr/lib/systemd/system and /usr/local/lib/systemd/system (and
	// /lib/systemd/system where that is another directory), not in /etc.
	VendorUnits []string
	// ContainerdConfig is the text of /etc/containerd/config.toml without what berth
	// itself put there for an OperatingSystemConfig; empty where nothing is left.
	ContainerdConfig string `json:",omitempty"`
	// ContainerdFiles are the texts of the other files of containerd, by path, that an
	// OperatingSystemConfig is put in force by and that another agent may have written:
	// the drop-in with the service's path, and hosts.toml of each registry.
	ContainerdFiles map[string]string `json:",omitempty"`
	// SecretData are the values of Secrets of the cluster that a document refers to,
	// by the Secret's name and the key in it.
	SecretData map[string]map[string][]byte `json:",omitempty"`
	// Files are the contents of files that a document names, by path; ClusterCA is what
	// the cluster says of its own CA, where a document has its digest alone.
	Files     map[string][]byte `json:",omitempty"`
	ClusterCA []byte            `json:",omitempty"`
	// Cluster is what the cluster tells its kubelets, where a document does not; nil
	// where it was not asked, or nobody answered.
	Cluster *ClusterSettings `json:",omitempty"`
	// ClusterServer is the URL of the API server that Azure says, where a document has
	// the cluster's resource id alone; ClusterCA is its CA then.
	ClusterServer string `json:",omitempty"`
	// CloudCAs are the certificates that the machine's cloud tells of its certificate
	// authorities, PEM, where a document says that it has its own; none where it was not
	// asked, or has none for this machine.
	CloudCAs []string `json:",omitempty"`
	// Expiring are, of azureuser and root, those whose passwords would expire, or would if
	// berth did not see to it.
	Expiring []string `json:",omitempty"`
	// Agent says that berth's agent keeps the machine, and sees to itself.
	Agent bool `json:",omitempty"`
}

// Architecture is that of the machine's programs.
func (f Facts) Architecture() string { return cmp.Or(f.Arch, runtime.GOARCH) }

// KnowsInterfaces says whether the cloud has told of the interfaces, or has of each of so
// many beside the first.
func (f *Facts) KnowsInterfaces(further int) bool {
	if len(f.Interfaces) > 0 && f.Interfaces[0] != "" {
		return true
	}
	for i := range further {
		if i+1 >= len(f.Interfaces) || f.Interfaces[i+1] == "" {
			return false
		}
	}
	return true
}

// References are what a document leaves to others to say: files to read, and a
// cluster, or Azure, to ask for what is not said of the cluster; nil for none.
type References struct {
	Files     []string
	Discovery *Discovery
	// Driver is the repository of the image that installs the GPUs' driver, of which a file
	// among Files says the tag; "" where none is to be installed. DriverPlatform is what it
	// is made for, as OS/ARCH.
	Driver, DriverPlatform string
	// PrivateServer: a tag of the virtual machine may have the address of the API server.
	PrivateServer bool
	// Server is the check of the API server that the machine is to join, where the document
	// alone says all of it; else nil.
	Server *desired.Check
	// Interfaces is how many network interfaces beside the first the document wants.
	Interfaces int
	// Settings is the question for what the document does not say of the cluster; nil
	// where it says all.
	Settings *SettingsQuestion
	// Azure is the question how an AKS cluster is reached; nil where the document says it.
	Azure *AzureCluster
	// Arc says which machine of Azure Arc this is to be; nil where the identity is
	// another.
	Arc *ArcRegistration
	// CloudCA is the question to the machine's own cloud for its certificate authorities;
	// nil where it has none of its own.
	CloudCA *CloudCA
	// Way is how the document has the machine reach what is outside; nil is the machine's own.
	// WayCAFiles are trusted on it besides.
	Way        *desired.Egress
	WayCAFiles []string
}

// RegistrationTag is the tag of a machine in Azure that says which registration made it.
const RegistrationTag = "berth-registration"

// ArcRegistration is a machine of Azure Arc, and how it becomes one.
type ArcRegistration struct {
	SubscriptionID, ResourceGroup, Name, Location string
	// Cloud is the agent's word for it; "" for the public one.
	Cloud string
	Tags  map[string]string
	// By is who registers it, Manager who is asked, Via the way out of the machine; nil is
	// the machine's own.
	By      *desired.AzureIdentity
	Manager string
	Via     *desired.Egress
	// CAFiles are trusted on the way besides.
	CAFiles []string
	// ClusterID is the cluster that the machine's identity is given the role for; "" for
	// none.
	ClusterID string
	// Agent is the package with the agent that registers it; nil where that is there.
	Agent *desired.Artifact
}

// ArcPackage is the name of the agent's package, ArcPackageFile where it is while it is
// installed.
const (
	ArcPackage     = "azcmagent"
	ArcPackageFile = paths.StateDir + "/azcmagent.package"
)

// ClusterSettings are what a cluster tells its kubelets; what is empty it does not.
type ClusterSettings struct {
	// DNS are the addresses of its name servers, Domain that of its services.
	DNS    []string `json:",omitempty"`
	Domain string   `json:",omitempty"`
	// CgroupDriver is systemd or cgroupfs.
	CgroupDriver string `json:",omitempty"`
}

// SettingsQuestion is a cluster that is to say what it tells its kubelets.
type SettingsQuestion struct {
	// Server is the URL of its API server; none is the one that Azure says. Its CA is CA, PEM, else in CAFile, one of the
	// References' files, else what Discovery finds.
	Server, CA, CAFile string
	// Kubeconfig is the machine's own as a node, if it is one already; else it asks with
	// the bootstrap token that TokenFile, TokenEnv or Token is.
	Kubeconfig, TokenFile, TokenEnv, Token string
	// Known is kubelet's configuration on the machine: what counts where the cluster does
	// not answer.
	Known string
}

// CloudCA is how a cloud tells its certificate authorities.
type CloudCA struct {
	// Legacy: in one answer, to everybody, as those of Location do.
	Legacy   bool
	Location string
	// Known begins the names of those that the machine has been told before: what counts
	// where the cloud does not answer.
	Known string
}

// AzureCluster is an AKS cluster of which Azure is to say how it is reached.
type AzureCluster struct {
	// ResourceID is the cluster's, Manager who is asked, Identity who asks, Via the way
	// out of the machine; nil is the machine's own.
	ResourceID, Manager string
	Identity            *desired.AzureIdentity
	Via                 *desired.Egress
	// CAFiles are among References.Files, and trusted on the way besides.
	CAFiles []string
}

// Discovery is a cluster that is to say which CA it has.
type Discovery struct {
	// Server is the URL of its API server; Pin is what its CA must be: sha256: and the
	// digest of its public key in hex.
	Server, Pin string
	// Known is where the machine has the CA once it has been asked for.
	Known string
	// TokenFile, TokenEnv or Token is the bootstrap token that signs the answer.
	TokenFile, TokenEnv string
	Token               string
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

// Package is the image's package of a program in a version of Kubernetes,
// kubelet_1.34.1-1_amd64.deb or kubelet-1.34.1-1.x86_64.rpm; the last one of
// several, "" if there is none.
func (f Facts) Package(program, version string) string {
	for _, p := range slices.Backward(f.Packages) {
		rest, ok := strings.CutPrefix(packageVersion(p, program), version)
		if version != "" && ok && rest != "" && strings.ContainsRune("-_+~", rune(rest[0])) {
			return p
		}
	}
	return ""
}

// PackageOfMinor is the image's package of a program that has patch versions of its
// own: the newest of the minor version of Kubernetes; "" if there is none.
func (f Facts) PackageOfMinor(program, version string) string {
	minor := version[:strings.LastIndexByte(version, '.')+1]
	newest, found := -1, ""
	for _, p := range f.Packages {
		rest, ok := strings.CutPrefix(packageVersion(p, program), minor)
		end := strings.IndexAny(rest, "-_+~")
		if minor == "" || !ok || end < 0 {
			continue
		}
		// What follows ~ comes before the release itself, as dpkg and rpm compare.
		rank, err := strconv.Atoi(rest[:end])
		if rank *= 2; rest[end] != '~' {
			rank++
		}
		if err == nil && rank >= newest {
			newest, found = rank, p
		}
	}
	return found
}

// packageVersion is what follows the program in the name of its package; "" for other
// files.
func packageVersion(file, program string) string {
	form, ok := map[string]string{".deb": "_", ".rpm": "-"}[path.Ext(file)]
	rest, named := strings.CutPrefix(path.Base(file), program+form)
	if !ok || !named {
		return ""
	}
	return rest
}

// HasVendorUnit says whether a package of the image brings a unit.
func (f Facts) HasVendorUnit(name string) bool { return slices.Contains(f.VendorUnits, name) }
