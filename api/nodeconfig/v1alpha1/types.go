package v1alpha1

import "encoding/json"

// NodeConfig is the whole document.
type NodeConfig struct {
	// APIVersion is berth.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is NodeConfig.
	Kind       string     `json:"kind"`
	Cluster    Cluster    `json:"cluster"`
	Identity   Identity   `json:"identity"`
	Components Components `json:"components"`
	Node       Node       `json:"node,omitzero"`
	Networking Networking `json:"networking,omitzero"`
	Artifacts  Artifacts  `json:"artifacts,omitzero"`
	Proxy      Proxy      `json:"proxy,omitzero"`
	Trust      Trust      `json:"trust,omitzero"`
	Agent      Agent      `json:"agent,omitzero"`
	Azure      Azure      `json:"azure,omitzero"`
}

// Secret is a text that is never printed.
type Secret string

// Cluster is the cluster that the machine joins.
type Cluster struct {
	// Server is the URL of the API server, https://name:port; without a port 443.
	// None, with resourceId and an identity of Azure: Azure is asked for it, and for the
	// CA. Read by kubelet.
	Server string `json:"server,omitempty"`
	// CAFile is the path of the cluster's CA certificates, PEM. Either this, ca or
	// caCertHash. Read by kubelet.
	CAFile string `json:"caFile,omitempty"`
	// CA is the cluster's CA certificates themselves, PEM.
	CA string `json:"ca,omitempty"`
	// CACertHash is the digest of the public key of the cluster's CA, sha256: and 64
	// hex digits. The CA itself is then read from the cluster with the bootstrap
	// token, as kubeadm does.
	CACertHash string `json:"caCertHash,omitempty"`
	// ResourceID is the Azure resource id of an AKS cluster; upper and lower case are
	// the same. The node then carries the label that keeps the cloud from deleting it.
	ResourceID string `json:"resourceId,omitempty"`
	// Location is the Azure region of that cluster, e.g. westeurope.
	Location string `json:"location,omitempty"`
}

// Identity is how the machine proves to the cluster who it is: exactly one of the
// members but direct and allowInline.
type Identity struct {
	BootstrapToken    *BootstrapToken    `json:"bootstrapToken,omitempty"`
	ClientCertificate *ClientCertificate `json:"clientCertificate,omitempty"`
	ManagedIdentity   *ManagedIdentity   `json:"managedIdentity,omitempty"`
	Arc               *Arc               `json:"arc,omitempty"`
	ServicePrincipal  *ServicePrincipal  `json:"servicePrincipal,omitempty"`
	AzureCLI          *AzureCLI          `json:"azureCLI,omitempty"`
	// Direct has kubelet show the API server tokens of its identity of Azure, and no
	// certificate of the Node's own. Neither the Node authorizer nor NodeRestriction holds
	// such a node to what is its own: berth rbac --direct prints the rights that it needs.
	// For managedIdentity, arc, and servicePrincipal with a file. Read by kubelet.
	Direct bool `json:"direct,omitempty"`
	// AllowInline lets a secret stand in the document itself.
	AllowInline bool `json:"allowInline,omitempty"`
}

// BootstrapToken is a token of the cluster, id.secret: exactly one of the members.
// It is read where kubelet's certificate has to be asked for, and nowhere else.
type BootstrapToken struct {
	// TokenFile is the path of a file that holds the token alone.
	TokenFile string `json:"tokenFile,omitempty"`
	// TokenEnv is the name of a variable in berth's environment.
	TokenEnv string `json:"tokenEnv,omitempty"`
	// Token is the token itself.
	Token Secret `json:"token,omitempty"`
}

// ClientCertificate is a certificate for the Node's own user, system:node:NAME in
// the group system:nodes. Its files stay where they are and are kubelet's to read.
type ClientCertificate struct {
	// CertFile is the path of the certificate, PEM.
	CertFile string `json:"certFile"`
	// KeyFile is the path of its key, PEM.
	KeyFile string `json:"keyFile"`
}

// ManagedIdentity is an identity that Azure gives to a virtual machine.
type ManagedIdentity struct {
	// ClientID chooses one of several; none is the machine's own.
	ClientID string `json:"clientId,omitempty"`
	// TenantID is the one that its tokens must be of, a GUID; none is any.
	TenantID string `json:"tenantId,omitempty"`
}

// Arc is the identity of a machine that Azure Arc knows.
type Arc struct {
	// SubscriptionID and TenantID are GUIDs; the subscription is the cluster's where
	// none is named.
	SubscriptionID string `json:"subscriptionId,omitempty"`
	TenantID       string `json:"tenantId,omitempty"`
	// MachineName is the machine's in Azure; none is its host name.
	MachineName string `json:"machineName,omitempty"`
	// ResourceGroup and Location are where it is registered; none is the cluster's.
	ResourceGroup string `json:"resourceGroup,omitempty"`
	Location      string `json:"location,omitempty"`
	// Tags are the machine's in Azure.
	Tags map[string]string `json:"tags,omitempty"`
	// Registration says who registers the machine; none: it is connected already.
	Registration *ArcRegistration `json:"registration,omitempty"`
	// Agent is the package azcmagent, a .deb or .rpm, which is installed before the
	// machine is registered where it has no such agent; none: the agent is there.
	Agent *ArcAgent `json:"agent,omitempty"`
}

// ArcAgent is where the package of Azure Arc's agent is: in a bundle of the machine, or
// behind URLs. Each needs a digest. Read by dpkg or rpm.
type ArcAgent struct {
	// URLs are tried in order. A digest may stand in the fragment: #sha256=HEX.
	URLs []string `json:"urls,omitempty"`
	// SHA256 is the package's digest, 64 hex digits.
	SHA256 string `json:"sha256,omitempty"`
}

// ArcRegistration is who registers a machine with Azure Arc, and takes it out again:
// either of servicePrincipal and azureCLI.
type ArcRegistration struct {
	ServicePrincipal *ServicePrincipal `json:"servicePrincipal,omitempty"`
	AzureCLI         *AzureCLI         `json:"azureCLI,omitempty"`
	// AssignRole lets the machine's identity ask Azure how the cluster is reached.
	AssignRole bool `json:"assignRole,omitempty"`
}

// ServicePrincipal is an application of Microsoft Entra ID with a secret or a
// certificate: exactly one of the four that begin with client and are not its id.
type ServicePrincipal struct {
	// TenantID and ClientID are GUIDs.
	TenantID string `json:"tenantId"`
	ClientID string `json:"clientId"`
	// ClientSecretFile is the path of a file that holds the secret alone.
	ClientSecretFile string `json:"clientSecretFile,omitempty"`
	// ClientSecretEnv is the name of a variable in berth's environment.
	ClientSecretEnv string `json:"clientSecretEnv,omitempty"`
	// ClientSecret is the secret itself.
	ClientSecret Secret `json:"clientSecret,omitempty"`
	// ClientCertificateFile is the path of a file with a certificate of the application
	// and its RSA key, PEM.
	ClientCertificateFile string `json:"clientCertificateFile,omitempty"`
}

// AzureCLI is the login of the Azure CLI of whoever runs berth, for the time of the
// join alone.
type AzureCLI struct {
	// TenantID is a GUID; none is the CLI's own.
	TenantID string `json:"tenantId,omitempty"`
}

// Components are the programs of the node.
type Components struct {
	Kubernetes Kubernetes `json:"kubernetes"`
	// Containerd, Runc and CNI are taken as the machine has them; what it lacks is
	// fetched.
	Containerd Component `json:"containerd,omitzero"`
	Runc       Component `json:"runc,omitzero"`
	CNI        Component `json:"cni,omitzero"`
	// SandboxImage is the image of every pod's sandbox; none is containerd's own.
	// Read by containerd.
	SandboxImage string `json:"sandboxImage,omitempty"`
}

// Kubernetes is kubelet and kubectl.
type Kubernetes struct {
	// Version is that of kubelet, e.g. 1.36.3.
	Version string `json:"version"`
	// URLs are where the node archive of that version is, tried in order; none is the
	// project's own address. A digest may stand in the fragment: #sha256=HEX.
	URLs []string `json:"urls,omitempty"`
	// SHA256 is the archive's digest, 64 hex digits.
	SHA256 string `json:"sha256,omitempty"`
}

// Component is one program, or several in one archive.
type Component struct {
	// Version is what the program must say of itself, e.g. 2.2.9; none is any, as
	// long as the machine has it.
	Version string `json:"version,omitempty"`
	// URLs are where it is, tried in order; none is the project's own address. A digest
	// may stand in the fragment: #sha256=HEX.
	URLs []string `json:"urls,omitempty"`
	// SHA256 is the download's digest, 64 hex digits.
	SHA256 string `json:"sha256,omitempty"`
}

// Node is what the cluster's Node says of the machine, and how kubelet runs.
type Node struct {
	// Name is the Node's, a DNS name; none is the machine's host name. Read by
	// kubelet and the API server.
	Name string `json:"name,omitempty"`
	// Labels are the Node's. Of kubernetes.io and k8s.io a node may set few: read by
	// kubelet and NodeRestriction.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints are what it registers with. Read by kubelet.
	Taints []Taint `json:"taints,omitempty"`
	// MaxPods is how many pods may run at most: 110. Read by kubelet.
	MaxPods int32 `json:"maxPods,omitempty"`
	// NodeIP is the address that it registers with, or one IPv4 and one IPv6 address
	// with a comma between; none leaves it to kubelet.
	NodeIP string `json:"nodeIP,omitempty"`
	// KubeReserved and SystemReserved are quantities by resource (cpu, memory,
	// ephemeral-storage, pid) that pods do not get. Read by kubelet.
	KubeReserved   map[string]string `json:"kubeReserved,omitempty"`
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	// KubeletConfig is a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that
	// goes before everything else, member by member. Read by kubelet.
	KubeletConfig json.RawMessage `json:"kubeletConfig,omitempty"`
	// Drain has the node's pods go elsewhere before another version of kubelet starts;
	// the node takes pods again afterwards.
	Drain *Drain `json:"drain,omitempty"`
}

// Drain is how the node is emptied: as by kubectl drain, pods of files and DaemonSets
// stay, disruption budgets and the pods' own time to end are respected, and a pod that
// nothing would start again keeps the change from being made.
type Drain struct {
	// Timeout is how long pods have to go, as 90s or 10m; then the change is not made.
	// Default: 5m.
	Timeout string `json:"timeout,omitempty"`
}

// Taint keeps pods away that do not tolerate it.
type Taint struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect TaintEffect `json:"effect"`
}

// TaintEffect is what a taint does.
type TaintEffect string

// The effects.
const (
	NoSchedule       TaintEffect = "NoSchedule"
	PreferNoSchedule TaintEffect = "PreferNoSchedule"
	NoExecute        TaintEffect = "NoExecute"
)

// Networking is how pods reach each other.
type Networking struct {
	// Mode says who configures the pod network: cluster, where an add-on of the
	// cluster does, or bridge, where berth does. Default: cluster.
	Mode NetworkMode `json:"mode,omitempty"`
	// PodCIDRs are the addresses of this machine's pods, with mode bridge: one, or
	// one of IPv4 and one of IPv6. None: those that the cluster gives to the Node.
	// Read by the CNI plugin host-local.
	PodCIDRs []string `json:"podCIDRs,omitempty"`
	// ClusterDNS are the addresses of the cluster's name servers; none leaves it to the
	// cluster: its ConfigMap kubelet-config, else its Service kube-dns. Read by kubelet.
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// ClusterDomain is the domain of the cluster's services; none leaves it to the
	// cluster's ConfigMap kubelet-config. Default: cluster.local. Read by kubelet.
	ClusterDomain string `json:"clusterDomain,omitempty"`
}

// NetworkMode is who configures the pod network.
type NetworkMode string

// The modes.
const (
	NetworkCluster NetworkMode = "cluster"
	NetworkBridge  NetworkMode = "bridge"
)

// Artifacts is how downloads are made.
type Artifacts struct {
	// Mirrors are asked before the source of a download.
	Mirrors []Mirror `json:"mirrors,omitempty"`
	// RegistryMirrors stand in for image registries. Read by containerd.
	RegistryMirrors []RegistryMirror `json:"registryMirrors,omitempty"`
	// RequireDigests refuses a download of which nobody gives the digest.
	RequireDigests bool `json:"requireDigests,omitempty"`
}

// Mirror holds what is below another URL.
type Mirror struct {
	// Prefix is what a URL must begin with, e.g. https://dl.k8s.io/.
	Prefix string `json:"prefix"`
	// URL takes its place, e.g. https://mirror.example/k8s/.
	URL string `json:"url"`
}

// RegistryMirror stands in for an image registry.
type RegistryMirror struct {
	// Registry is the name that images carry, e.g. registry.k8s.io.
	Registry string `json:"registry"`
	// URL is where they are, https://host[:port][/path].
	URL string `json:"url"`
}

// Proxy is the way to servers outside.
type Proxy struct {
	// HTTP and HTTPS are URLs of proxies for the two schemes.
	HTTP  Secret `json:"http,omitempty"`
	HTTPS Secret `json:"https,omitempty"`
	// NoProxy are names, domains (.example), addresses and CIDRs that are reached
	// directly. The API server and the loopback addresses are always among them.
	NoProxy []string `json:"noProxy,omitempty"`
	// AllowInline lets the URLs hold a password.
	AllowInline bool `json:"allowInline,omitempty"`
}

// Trust is whom the machine trusts besides its own CAs.
type Trust struct {
	// CAFiles are paths of CA certificates, PEM.
	CAFiles []string `json:"caFiles,omitempty"`
	// CAs are CA certificates themselves, PEM.
	CAs []string `json:"cas,omitempty"`
}

// Agent is what keeps the machine so.
type Agent struct {
	// Keep has berth's agent stay on the machine and keep it as the document says.
	Keep bool `json:"keep,omitempty"`
}

// Azure is where the services of Azure are that an identity of Azure needs: those of
// the public cloud where it says nothing.
type Azure struct {
	// Authority is where Microsoft Entra ID gives tokens: https://login.microsoftonline.com.
	Authority string `json:"authority,omitempty"`
	// ResourceManager is asked for the cluster: https://management.azure.com.
	ResourceManager string `json:"resourceManager,omitempty"`
	// ServerID is the Entra application of the API server, a GUID: that of AKS. The
	// machine has tokens for no other.
	ServerID string `json:"serverId,omitempty"`
}
