package exitcode

// The numbers by name.
const (
	OK                      = 0
	UnitStart               = 4
	Containerd              = 28
	Runc                    = 29
	KubernetesDownload      = 31
	Kubelet                 = 34
	ImagePull               = 36
	ContainerdVersion       = 39
	CNIDownload             = 41
	Module                  = 49
	Outbound                = 50
	APIConnect              = 51
	APILookup               = 52
	APILookupAzure          = 53
	ContainerdDownload      = 70
	RuncDownload            = 71
	SearchDomain            = 80
	GPUDriver               = 84
	GPUDevicePlugin         = 86
	GPUInfoROM              = 87
	Sysctl                  = 103
	CrictlDownload          = 117
	KubeletInstall          = 121
	KubectlInstall          = 122
	GPUServices             = 123
	Timeout                 = 124
	DRADriver               = 129
	SwapFile                = 130
	SwapSpace               = 131
	Killed                  = 137
	Streaming               = 153
	Trust                   = 161
	SecureBootstrapDownload = 169
	DisableSSH              = 172
	MetadataInMangle        = 174
	MetadataInFilter        = 175
	PublicKeys              = 178
	SnapshotUpdate          = 202
	KubernetesInstall       = 204
	CredentialProvider      = 205
	CNIVersion              = 206
	KubernetesPull          = 207
	CredentialProviderPull  = 208
	RegistryIdentity        = 210
	RegistryConnect         = 211
	RegistryUnauthorized    = 212
	LocalDNS                = 216
	LocalDNSProgram         = 219
	SecureBootstrap         = 220
	GPUDecision             = 224
	GPUPackages             = 235
	SandboxImage            = 233
	Internal                = 240
	SecondaryNIC            = 243
	PacketFilter            = 244
	NotRegistered           = 245
	NotReady                = 246
	Interrupted             = 247
	NoSpace                 = 248
	Locked                  = 249
	CommandDocument         = 250
	Digest                  = 251
	Credential              = 252
	Untrusted               = 253
	Write                   = 254
)

var registry = []Code{
	{OK, "OK", "provisioning reached the milestone it was asked to wait for", "Nothing to do."},
	{UnitStart, "ERR_SYSTEMCTL_START_FAIL", "a systemd unit could not be started or enabled",
		"Look at the unit that is named: systemctl status UNIT, journalctl -u UNIT."},
	{Containerd, "ERR_CONTAINERD_INSTALL_TIMEOUT", "containerd could not be installed, is not in the image or does not run",
		"Look at journalctl -u containerd, and at the image's containerd and runc."},
	{Runc, "ERR_RUNC_INSTALL_TIMEOUT", "runc could not be installed, or is not in the image",
		"Check that the URL in runc_config leads to runc for this architecture, or put runc into the image."},
	{KubernetesDownload, "ERR_K8S_DOWNLOAD_TIMEOUT", "the Kubernetes binaries could not be downloaded",
		"Check that the URL in kube_binary_config is reachable from the node, or put the version into the image."},
	{Kubelet, "ERR_KUBELET_START_FAIL", "kubelet could not be started or keeps exiting",
		"The last lines of kubelet stand in Error; more: journalctl -u kubelet."},
	{ImagePull, "ERR_CONTAINERD_CTR_IMG_PULL_TIMEOUT", "a container image could not be loaded",
		"Check that the registry is reachable from the node and that the image's name is right."},
	{ContainerdVersion, "ERR_CONTAINERD_VERSION_INVALID", "the version of containerd is unknown or unsupported",
		"Put containerd 1.7 or later into the image."},
	{CNIDownload, "ERR_CNI_DOWNLOAD_TIMEOUT", "the CNI plugins could not be downloaded or unpacked",
		"Check that the URL in network_config is reachable from the node, or put the plugins into /opt/cni/bin."},
	{Module, "ERR_MODPROBE_FAIL", "a kernel module could not be loaded",
		"Check that the module belongs to the running kernel: modprobe -v MODULE, uname -r."},
	{Outbound, "ERR_OUTBOUND_CONN_FAIL", "the command that proves that the node has a way out fails",
		"Run the command of outbound_command on the node; check routes, network security groups, name servers and the proxy between the node and what it asks."},
	{APIConnect, "ERR_K8S_API_SERVER_CONN_FAIL", "the API server's port does not answer",
		"Check routes, network security groups and the proxy between the node and the API server."},
	{APILookup, "ERR_K8S_API_SERVER_DNS_LOOKUP_FAIL", "the API server's name does not resolve",
		"Check the node's name servers and, for a private cluster, the DNS zone's link to the network."},
	{APILookupAzure, "ERR_K8S_API_SERVER_AZURE_DNS_LOOKUP_FAIL", "Azure DNS (168.63.129.16) does not resolve the API server's name",
		"Check the private DNS zone and its link to the node's virtual network."},
	{ContainerdDownload, "ERR_CONTAINERD_DOWNLOAD_TIMEOUT", "containerd could not be downloaded",
		"Check that the URL in containerd_config is reachable from the node, or put containerd into the image."},
	{RuncDownload, "ERR_RUNC_DOWNLOAD_TIMEOUT", "runc could not be downloaded",
		"Check that the URL in runc_config is reachable from the node, or put runc into the image."},
	{SearchDomain, "ERR_CUSTOM_SEARCH_DOMAINS_FAIL", "the machine could not enter its domain",
		"Look at journalctl -u berth-realm-join: realmd and what it needs are the image's; domain, user and password are in custom_search_domain_config."},
	{GPUDriver, "ERR_GPU_DRIVERS_START_FAIL", "the machine has no NVIDIA GPU, or its driver could not be installed, loaded or asked",
		"Look at journalctl -u berth-gpu, and at what nvidia-smi says. GPUs are in gpu_config and vm_size."},
	{GPUDevicePlugin, "ERR_GPU_DEVICE_PLUGIN_START_FAIL", "the device plugin of GPUs does not start",
		"Look at journalctl -u nvidia-device-plugin; it is asked for by enable_managed_gpu, or by a tag of the virtual machine."},
	{GPUInfoROM, "ERR_GPU_INFO_ROM_CORRUPTED", "a GPU says that its own memory of what it is (infoROM) is corrupted",
		"Replace the virtual machine: the GPU is broken. nvidia-smi names it."},
	{Sysctl, "ERR_SYSCTL_RELOAD", "a kernel parameter could not be set",
		"Check the key and its range for the running kernel; the field that asks for it is named."},
	{CrictlDownload, "ERR_CRICTL_DOWNLOAD_TIMEOUT", "crictl could not be downloaded",
		"Check that the URL is reachable from the node, or put crictl into the image."},
	{KubeletInstall, "ERR_KUBELET_INSTALL_FAIL", "kubelet is not in the image, or of another version than the configuration asks for",
		"Put the version that the configuration asks for into the image, or give a URL for it."},
	{KubectlInstall, "ERR_KUBECTL_INSTALL_FAIL", "kubectl could not be installed",
		"Put the version that the configuration asks for into the image, or give a URL for it."},
	{GPUServices, "ERR_ENABLE_MANAGED_GPU_EXPERIENCE", "the device plugin and the driver of dynamic resource allocation are both asked for",
		"Switch one of enable_managed_gpu and enable_managed_gpu_dra off; the tag EnableManagedGPUExperience of the virtual machine says the same as the first."},
	{Timeout, "ERR_PROVISION_TIMEOUT", "the time in cse_timeout is over (the number of timeout(1); AKS gives it no name)",
		"Look at what was being done (Doing) and at berth timeline; raise cse_timeout if the step is only slow."},
	{DRADriver, "ERR_DRA_DRIVER_START_FAIL", "the driver of dynamic resource allocation for GPUs does not start",
		"Look at journalctl -u dra-driver-nvidia-gpu; it is asked for by enable_managed_gpu_dra."},
	{SwapFile, "ERR_SWAP_CREATE_FAIL", "the swap file could not be made or used",
		"Look at what is named: a path that is taken, or the unit of type swap (systemctl status UNIT). Swap is in custom_linux_os_config."},
	{SwapSpace, "ERR_SWAP_CREATE_INSUFFICIENT_DISK_SPACE", "the disk has no room for the swap file",
		"Make swap_file_size smaller, or the disk larger."},
	{Killed, "ERR_PROVISION_KILLED", "provisioning was killed before it could report (128 + SIGKILL; AKS gives it no name)",
		"Look for the kernel's out-of-memory killer in the journal; systemctl start aks-node-controller runs it again."},
	{Streaming, "ERR_ARTIFACT_STREAMING_INSTALL", "a service that streams images does not start, or is not in the image",
		"Look at journalctl -u for the unit that is named; put the services into the image, or leave enable_artifact_streaming off."},
	{Trust, "ERR_UPDATE_CA_CERTS", "a CA certificate could not be had or added to the machine's trust store",
		"Check the certificate in custom_ca_certs or proxy_trusted_ca; those of a cloud of its own come from the WireServer, 168.63.129.16."},
	{SecureBootstrapDownload, "ERR_SECURE_TLS_BOOTSTRAP_CLIENT_DOWNLOAD_ERROR", "the client of secure TLS bootstrapping could not be downloaded or unpacked, or is not in the image",
		"Check that secure_tls_bootstrapping_custom_client_download_url is reachable from the node, or put the client into the image as /opt/bin/aks-secure-tls-bootstrap-client."},
	{DisableSSH, "ERR_DISABLE_SSH", "the SSH server could not be switched off",
		"Look at the unit that is named: systemctl status UNIT. Until it is off the machine is no node."},
	{MetadataInMangle, "ERR_INSERT_IMDS_RESTRICTION_RULE_INTO_MANGLE_TABLE", "pods could not be kept from the instance metadata, before the rules of iptables",
		packetFilterHint},
	{MetadataInFilter, "ERR_INSERT_IMDS_RESTRICTION_RULE_INTO_FILTER_TABLE", "pods could not be kept from the instance metadata",
		packetFilterHint},
	{PublicKeys, "ERR_CONFIG_PUBKEY_AUTH_SSH", "the SSH server could not be told to refuse public keys",
		"Read what sshd says of its configuration: sshd -t; and what is in force: sshd -T."},
	{SnapshotUpdate, "ERR_SNAPSHOT_UPDATE_START_FAIL", "the image's timer of package snapshots does not start",
		"Look at systemctl status snapshot-update.timer; an image without it has nothing to start."},
	{KubernetesInstall, "ERR_K8S_INSTALL_ERR", "the Kubernetes binaries could not be unpacked or installed",
		"Check that the archive behind the URL is the one for this architecture."},
	{CredentialProvider, "ERR_CREDENTIAL_PROVIDER_DOWNLOAD_TIMEOUT", "the credential provider could not be downloaded or unpacked, or is not in the image",
		"Check that linux_credential_provider_url is reachable from the node, or put the plugin into the image."},
	{CNIVersion, "ERR_CNI_VERSION_INVALID", "the CNI plugins are not in the image, or of a wrong version",
		"Put a supported version into /opt/cni/bin, or give a URL in network_config."},
	{KubernetesPull, "ERR_ORAS_PULL_K8S_FAIL", "the registry does not give the Kubernetes binaries",
		"Check repository and tag in kube_binary_config, and that the registry holds them for this architecture."},
	{CredentialProviderPull, "ERR_ORAS_PULL_CREDENTIAL_PROVIDER", "the registry does not give the credential provider",
		"Check repository and tag in linux_credential_provider_url, and that the registry holds it for this architecture."},
	{RegistryIdentity, "ERR_ORAS_IMDS_TIMEOUT", "the instance metadata service gives no token for the registry in time",
		"Check that nothing on the node closes 169.254.169.254, and that the VM has a managed identity."},
	{RegistryConnect, "ERR_ORAS_PULL_NETWORK_TIMEOUT", "the registry does not answer, or breaks off",
		"Check that the registry's name resolves and its port answers from the node: private endpoint, DNS zone, proxy."},
	{RegistryUnauthorized, "ERR_ORAS_PULL_UNAUTHORIZED", "the registry refuses this machine's identity",
		"Give the managed identity in auth_config the role AcrPull on the registry, or allow anonymous pulls."},
	{LocalDNS, "ERR_LOCALDNS_FAIL", "the node's own name server does not start or does not answer",
		"Look at journalctl -u localdns, and whether the machine's name servers answer: it forwards to them. Zones are in local_dns_profile."},
	{LocalDNSProgram, "ERR_LOCALDNS_BINARY_ERR", "the image has no CoreDNS for the node's own name server",
		"Put CoreDNS into the image as /opt/azure/containers/localdns/binary/coredns, or leave enable_local_dns off."},
	{SecureBootstrap, "ERR_SECURE_TLS_BOOTSTRAP_ENABLE_FAILURE", "the client of secure TLS bootstrapping does not start, or brings no certificate",
		"Look at journalctl -u secure-tls-bootstrap and /var/log/azure/aks/secure-tls-bootstrap.log: it asks the metadata service, Microsoft Entra ID and the API server."},
	{GPUDecision, "ERR_NVIDIA_DRIVER_INSTALL", "nothing says which driver the machine's GPUs take",
		"Put /opt/azure/components.json into the image, with an image of the driver for the size of the virtual machine in GPUContainerImages."},
	{SandboxImage, "ERR_PULL_POD_INFRA_CONTAINER_IMAGE", "the image of the pods' sandbox could not be pulled from the cluster's registry",
		"Check that bootstrap_profile_container_registry_server holds the image that pod_infra_container_image_url names, and is reachable from the node."},
	{GPUPackages, "ERR_NVIDIA_DCGM_INSTALL", "the image has no services for GPUs",
		"Put the packages of NVIDIA's device plugin, or of its driver of dynamic resource allocation, and of DCGM into the image, or switch enable_managed_gpu and enable_managed_gpu_dra off."},
	{Internal, "ERR_AKS_NODE_CONTROLLER_ERROR", "the configuration was refused, or an error has no code of its own",
		"Correct the fields that are named; if none is, read the log at " + LogPath + "."},
	{SecondaryNIC, "ERR_SECONDARY_NIC_CONFIG_FAIL", "a network interface beside the first could not be configured",
		"Attach as many interfaces to the VM as standard_secondary_nic_count says; the image has to have systemd-networkd: systemctl status systemd-networkd, networkctl."},
	{PacketFilter, "ERR_PACKET_FILTER", "pods could not be kept from the WireServer: the packet filter does not take its rules",
		packetFilterHint},
	{NotRegistered, "ERR_NODE_NOT_REGISTERED", "kubelet runs, but the Node does not exist in the cluster",
		"The reason is in Error; kubelet's own words: journalctl -u kubelet."},
	{NotReady, "ERR_NODE_NOT_READY", "the Node exists, but its Ready condition is not True",
		"The condition's message is in Error; a missing CNI configuration is the usual cause."},
	{Interrupted, "ERR_PROVISION_INTERRUPTED", "provisioning was told to stop (SIGTERM, SIGINT or SIGHUP)",
		"Run berth provision again; it continues where it stopped."},
	{NoSpace, "ERR_NO_SPACE", "no space or no inodes are left on a file system",
		"Free space on the file system of the path that is named: df -h, df -i."},
	{Locked, "ERR_LOCKED", "another berth is changing this machine",
		"Wait for the process that is named, or stop it."},
	{CommandDocument, "ERR_NBC_CMD_UNSUPPORTED", "--nbc-cmd asks for a shell script, and berth runs none",
		"Send the aksnodeconfig.v1 document and use --provision-config."},
	{Digest, "ERR_DIGEST_MISMATCH", "a download is not what its digest says, or has no digest where one is required",
		"Compare the digest in the configuration with the file behind the URL; do not override it."},
	{Credential, "ERR_CLIENT_CERTIFICATE", "the cluster gives this node no client certificate, or another machine that runs has its name",
		"Check that the bootstrap token is valid and not expired, and that its requests are approved and signed; for a name that is taken, give this machine another one."},
	{Untrusted, "ERR_API_SERVER_UNTRUSTED", "the API server's certificate is not signed by the CA of the configuration",
		"Compare kubernetes_ca_cert with the cluster's CA; look for a proxy that intercepts TLS."},
	{Write, "ERR_WRITE_FAIL", "the machine refuses a write",
		"Check the file system of the path that is named: read-only, immutable or broken."},
}

const packetFilterHint = "Check that the kernel has nf_tables (modprobe nf_tables) and that nft list table inet berth answers."
