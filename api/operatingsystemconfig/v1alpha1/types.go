package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperatingSystemConfig is the whole document.
type OperatingSystemConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitempty"`
}

// Spec is what the cluster manager itself wants.
type Spec struct {
	// Class, Type and ProviderConfig are for the controller that turns the document
	// into user data. They have no effect on a node.
	Class          string          `json:"class,omitempty"`
	Type           string          `json:"type,omitempty"`
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
	// Purpose tells a document for a machine's first boot from one for a node's life.
	Purpose        Purpose         `json:"purpose,omitempty"`
	Units          []Unit          `json:"units,omitempty"`
	Files          []File          `json:"files,omitempty"`
	CRIConfig      *CRIConfig      `json:"criConfig,omitempty"`
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty"`
}

// Purpose is what a document is for.
type Purpose string

// The purposes.
const (
	PurposeProvision Purpose = "provision"
	PurposeReconcile Purpose = "reconcile"
)

// Status is what extensions add.
type Status struct {
	ExtensionUnits []Unit                `json:"extensionUnits,omitempty"`
	ExtensionFiles []File                `json:"extensionFiles,omitempty"`
	CloudConfig    *CloudConfig          `json:"cloudConfig,omitempty"`
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty"`
}

// CloudConfig is the user data that was made of a document for first boots.
type CloudConfig struct {
	SecretRef SecretReference `json:"secretRef"`
}

// SecretReference names a Secret anywhere in a cluster.
type SecretReference struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Unit is a systemd unit. Several of one name are one: of Command, Enable and
// Content the last counts, DropIns and FilePaths add up.
type Unit struct {
	Name string `json:"name"`
	// Command is what to do when the unit changes; empty is a restart.
	Command *UnitCommand `json:"command,omitempty"`
	// Enable is whether it starts at boot; nil is true. What does not is stopped.
	Enable *bool `json:"enable,omitempty"`
	// Content is its definition; nil leaves that to the distribution.
	Content *string  `json:"content,omitempty"`
	DropIns []DropIn `json:"dropIns,omitempty"`
	// FilePaths are files of the document whose change restarts it.
	FilePaths []string `json:"filePaths,omitempty"`
}

// UnitCommand is what to do with a unit.
type UnitCommand string

// The commands. A start and a restart are the same: what runs as it should is
// left alone.
const (
	CommandStart   UnitCommand = "start"
	CommandRestart UnitCommand = "restart"
	CommandStop    UnitCommand = "stop"
)

// DropIn changes a unit's definition.
type DropIn struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// File is a regular file of root's.
type File struct {
	Path string `json:"path"`
	// Permissions are the mode bits as a number, 420 for 0644; nil is 0600.
	Permissions *uint32     `json:"permissions,omitempty"`
	Content     FileContent `json:"content"`
	// HostName is the only machine that gets the file; nil is every one.
	HostName *string `json:"hostName,omitempty"`
}

// FileContent is where a file's content comes from: one of the three.
type FileContent struct {
	SecretRef *FileContentSecretRef `json:"secretRef,omitempty"`
	Inline    *FileContentInline    `json:"inline,omitempty"`
	// TransmitUnencoded is for user data. It has no effect on a node.
	TransmitUnencoded *bool                `json:"transmitUnencoded,omitempty"`
	ImageRef          *FileContentImageRef `json:"imageRef,omitempty"`
}

// FileContentSecretRef is a value of a Secret in the cluster manager's namespace.
type FileContentSecretRef struct {
	Name    string `json:"name"`
	DataKey string `json:"dataKey"`
}

// EncodingBase64 is the only encoding besides none.
const EncodingBase64 = "b64"

// FileContentInline is the content itself.
type FileContentInline struct {
	// Encoding is "" or "b64".
	Encoding string `json:"encoding"`
	Data     string `json:"data"`
}

// FileContentImageRef is a file out of a container image.
type FileContentImageRef struct {
	Image           string `json:"image"`
	FilePathInImage string `json:"filePathInImage"`
}

// CRIConfig is about the container runtime.
type CRIConfig struct {
	Name CRIName `json:"name"`
	// CgroupDriver is who makes the cgroups of containers.
	CgroupDriver *CgroupDriver     `json:"cgroupDriver,omitempty"`
	Containerd   *ContainerdConfig `json:"containerd,omitempty"`
}

// CRIName names a container runtime.
type CRIName string

// CRINameContainerd is the only one.
const CRINameContainerd CRIName = "containerd"

// CgroupDriver is who makes the cgroups of containers.
type CgroupDriver string

// The cgroup drivers.
const (
	CgroupDriverSystemd  CgroupDriver = "systemd"
	CgroupDriverCgroupfs CgroupDriver = "cgroupfs"
)

// ContainerdConfig is about containerd.
type ContainerdConfig struct {
	Registries []RegistryConfig `json:"registries,omitempty"`
	// SandboxImage is the pause image.
	SandboxImage string         `json:"sandboxImage"`
	Plugins      []PluginConfig `json:"plugins,omitempty"`
}

// RegistryConfig is how images of one registry are had.
type RegistryConfig struct {
	// Upstream is the name that images carry, or "_default" for all others.
	Upstream string `json:"upstream"`
	// Server is asked when no host has an image.
	Server *string        `json:"server,omitempty"`
	Hosts  []RegistryHost `json:"hosts,omitempty"`
	// ReadinessProbe asks that the hosts are waited for.
	ReadinessProbe *bool `json:"readinessProbe,omitempty"`
}

// RegistryHost stands in for a registry.
type RegistryHost struct {
	URL string `json:"url"`
	// Capabilities are what it is asked for; none is pull and resolve.
	Capabilities []RegistryCapability `json:"capabilities,omitempty"`
	// CACerts are paths of PEM files.
	CACerts []string `json:"caCerts,omitempty"`
	// OverridePath: URL holds the whole path of the API.
	OverridePath *bool `json:"overridePath,omitempty"`
}

// RegistryCapability is something that a host is asked for.
type RegistryCapability string

// The capabilities.
const (
	CapabilityPull    RegistryCapability = "pull"
	CapabilityResolve RegistryCapability = "resolve"
	CapabilityPush    RegistryCapability = "push"
)

// PluginConfig changes the configuration of one of containerd's plugins.
type PluginConfig struct {
	// Op is "add" where it is nil.
	Op *PluginPathOperation `json:"op,omitempty"`
	// Path leads to the table, the plugin's name first.
	Path []string `json:"path"`
	// Values are the members that are set; a removal has none.
	Values json.RawMessage `json:"values,omitempty"`
}

// PluginPathOperation is what happens at a path.
type PluginPathOperation string

// The operations.
const (
	AddPluginPath    PluginPathOperation = "add"
	RemovePluginPath PluginPathOperation = "remove"
)

// InPlaceUpdates are versions that a node is brought to without being replaced.
type InPlaceUpdates struct {
	OperatingSystemVersion string               `json:"operatingSystemVersion,omitempty"`
	KubeletVersion         string               `json:"kubelet,omitempty"`
	CredentialsRotation    *CredentialsRotation `json:"credentialsRotation,omitempty"`
}

// CredentialsRotation is when rotations of a cluster's credentials began.
type CredentialsRotation struct {
	CertificateAuthorities *Rotation `json:"certificateAuthorities,omitempty"`
	ServiceAccountKey      *Rotation `json:"serviceAccountKey,omitempty"`
}

// Rotation is when one began.
type Rotation struct {
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}

// InPlaceUpdatesStatus is how a node's operating system is updated.
type InPlaceUpdatesStatus struct {
	OSUpdate *OSUpdate `json:"osUpdate,omitempty"`
}

// OSUpdate is the command that does it.
type OSUpdate struct {
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
}
