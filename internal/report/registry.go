package report

// The numbers that the code below refers to by name.
const (
	CodeOK                 = 0
	CodeUnitStart          = 4
	CodeContainerd         = 28
	CodeRunc               = 29
	CodeKubernetesDownload = 31
	CodeKubelet            = 34
	CodeCNIDownload        = 41
	CodeModule             = 49
	CodeAPIConnect         = 51
	CodeAPILookup          = 52
	CodeAPILookupAzure     = 53
	CodeContainerdDownload = 70
	CodeRuncDownload       = 71
	CodeSysctl             = 103
	CodeKubeletInstall     = 121
	CodeTimeout            = 124
	CodeKilled             = 137
	CodeTrust              = 161
	CodeKubernetesInstall  = 204
	CodeCredentialProvider = 205
	CodeCNIVersion         = 206

	CodeKubernetesPull         = 207
	CodeCredentialProviderPull = 208
	CodeRegistryIdentity       = 210
	CodeRegistryConnect        = 211
	CodeRegistryUnauthorized   = 212

	CodeInternal        = 240
	CodeNotRegistered   = 245
	CodeNotReady        = 246
	CodeInterrupted     = 247
	CodeNoSpace         = 248
	CodeLocked          = 249
	CodeCommandDocument = 250
	CodeDigest          = 251
	CodeCredential      = 252
	CodeUntrusted       = 253
	CodeWrite           = 254
)

var registry = []Code{
	{0, "OK", "provisioning reached the stage it was asked to wait for", "Nothing to do."},
	{4, "ERR_SYSTEMCTL_START_FAIL", "a systemd unit could not be started or enabled",
		"Look at the unit that is named: systemctl status UNIT, journalctl -u UNIT."},
	{28, "ERR_CONTAINERD_INSTALL_TIMEOUT", "containerd could not be installed, is not in the image or does not run",
		"Look at journalctl -u containerd, and at the image's containerd and runc."},
	{29, "ERR_RUNC_INSTALL_TIMEOUT", "runc could not be installed, or is not in the image",
		"Check that the URL in runc_config leads to runc for this architecture, or put runc into the image."},
	{31, "ERR_K8S_DOWNLOAD_TIMEOUT", "the Kubernetes binaries could not be downloaded",
		"Check that the URL in kube_binary_config is reachable from the node, or put the version into the image."},
	{34, "ERR_KUBELET_START_FAIL", "kubelet could not be started or keeps exiting",
		"The last lines of kubelet stand in Error; more: journalctl -u kubelet."},
	{36, "ERR_CONTAINERD_CTR_IMG_PULL_TIMEOUT", "a container image could not be loaded",
		"Check that the registry is reachable from the node and that the image's name is right."},
	{39, "ERR_CONTAINERD_VERSION_INVALID", "the version of containerd is unknown or unsupported",
		"Put containerd 1.7 or later into the image."},
	{41, "ERR_CNI_DOWNLOAD_TIMEOUT", "the CNI plugins could not be downloaded or unpacked",
		"Check that the URL in network_config is reachable from the node, or put the plugins into /opt/cni/bin."},
	{49, "ERR_MODPROBE_FAIL", "a kernel module could not be loaded",
		"Check that the module belongs to the running kernel: modprobe -v MODULE, uname -r."},
	{51, "ERR_K8S_API_SERVER_CONN_FAIL", "the API server's port does not answer",
		"Check routes, network security groups and the proxy between the node and the API server."},
	{52, "ERR_K8S_API_SERVER_DNS_LOOKUP_FAIL", "the API server's name does not resolve",
		"Check the node's name servers and, for a private cluster, the DNS zone's link to the network."},
	{53, "ERR_K8S_API_SERVER_AZURE_DNS_LOOKUP_FAIL", "Azure DNS (168.63.129.16) does not resolve the API server's name",
		"Check the private DNS zone and its link to the node's virtual network."},
	{70, "ERR_CONTAINERD_DOWNLOAD_TIMEOUT", "containerd could not be downloaded",
		"Check that the URL in containerd_config is reachable from the node, or put containerd into the image."},
	{71, "ERR_RUNC_DOWNLOAD_TIMEOUT", "runc could not be downloaded",
		"Check that the URL in runc_config is reachable from the node, or put runc into the image."},
	{103, "ERR_SYSCTL_RELOAD", "a kernel parameter could not be set",
		"Check the key and its range for the running kernel; the field that asks for it is named."},
	{117, "ERR_CRICTL_DOWNLOAD_TIMEOUT", "crictl could not be downloaded",
		"Check that the URL is reachable from the node, or put crictl into the image."},
	{121, "ERR_KUBELET_INSTALL_FAIL", "kubelet is not in the image, or of another version than the configuration asks for",
		"Put the version that the configuration asks for into the image, or give a URL for it."},
	{122, "ERR_KUBECTL_INSTALL_FAIL", "kubectl could not be installed",
		"Put the version that the configuration asks for into the image, or give a URL for it."},
	{124, "ERR_PROVISION_TIMEOUT", "the time in cse_timeout is over (the number of timeout(1); AKS gives it no name)",
		"Look at what was being done (Doing) and at berth timeline; raise cse_timeout if the step is only slow."},
	{137, "ERR_PROVISION_KILLED", "provisioning was killed before it could report (128 + SIGKILL; AKS gives it no name)",
		"Look for the kernel's out-of-memory killer in the journal; systemctl start aks-node-controller runs it again."},
	{161, "ERR_UPDATE_CA_CERTS", "a CA certificate could not be added to the machine's trust store",
		"Check the certificate in custom_ca_certs or proxy_trusted_ca."},
	{204, "ERR_K8S_INSTALL_ERR", "the Kubernetes binaries could not be unpacked or installed",
		"Check that the archive behind the URL is the one for this architecture."},
	{205, "ERR_CREDENTIAL_PROVIDER_DOWNLOAD_TIMEOUT", "the credential provider could not be downloaded or unpacked, or is not in the image",
		"Check that linux_credential_provider_url is reachable from the node, or put the plugin into the image."},
	{206, "ERR_CNI_VERSION_INVALID", "the CNI plugins are not in the image, or of a wrong version",
		"Put a supported version into /opt/cni/bin, or give a URL in network_config."},
	{207, "ERR_ORAS_PULL_K8S_FAIL", "the registry does not give the Kubernetes binaries",
		"Check repository and tag in kube_binary_config, and that the registry holds them for this architecture."},
	{208, "ERR_ORAS_PULL_CREDENTIAL_PROVIDER", "the registry does not give the credential provider",
		"Check repository and tag in linux_credential_provider_url, and that the registry holds it for this architecture."},
	{210, "ERR_ORAS_IMDS_TIMEOUT", "the instance metadata service gives no token for the registry in time",
		"Check that nothing on the node closes 169.254.169.254, and that the VM has a managed identity."},
	{211, "ERR_ORAS_PULL_NETWORK_TIMEOUT", "the registry does not answer, or breaks off",
		"Check that the registry's name resolves and its port answers from the node: private endpoint, DNS zone, proxy."},
	{212, "ERR_ORAS_PULL_UNAUTHORIZED", "the registry refuses this machine's identity",
		"Give the managed identity in auth_config the role AcrPull on the registry, or allow anonymous pulls."},
	{240, "ERR_AKS_NODE_CONTROLLER_ERROR", "the configuration was refused, or an error has no code of its own",
		"Correct the fields that are named; if none is, read the log at " + LogPath + "."},
	{245, "ERR_NODE_NOT_REGISTERED", "kubelet runs, but the Node does not exist in the cluster",
		"The reason is in Error; kubelet's own words: journalctl -u kubelet."},
	{246, "ERR_NODE_NOT_READY", "the Node exists, but its Ready condition is not True",
		"The condition's message is in Error; a missing CNI configuration is the usual cause."},
	{247, "ERR_PROVISION_INTERRUPTED", "provisioning was told to stop (SIGTERM or SIGINT)",
		"Run berth provision again; it continues where it stopped."},
	{248, "ERR_NO_SPACE", "no space or no inodes are left on a file system",
		"Free space on the file system of the path that is named: df -h, df -i."},
	{249, "ERR_LOCKED", "another berth is changing this machine",
		"Wait for the process that is named, or stop it."},
	{250, "ERR_NBC_CMD_UNSUPPORTED", "--nbc-cmd asks for a shell script, and berth runs none",
		"Send the aksnodeconfig.v1 document and use --provision-config."},
	{251, "ERR_DIGEST_MISMATCH", "a download is not what its digest says, or has no digest where one is required",
		"Compare the digest in the configuration with the file behind the URL; do not override it."},
	{252, "ERR_CLIENT_CERTIFICATE", "the cluster gives this node no client certificate",
		"Check that the bootstrap token is valid and not expired, and that its requests are approved and signed."},
	{253, "ERR_API_SERVER_UNTRUSTED", "the API server's certificate is not signed by the CA of the configuration",
		"Compare kubernetes_ca_cert with the cluster's CA; look for a proxy that intercepts TLS."},
	{254, "ERR_WRITE_FAIL", "the machine refuses a write",
		"Check the file system of the path that is named: read-only, immutable or broken."},
}
