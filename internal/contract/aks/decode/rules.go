package decode

import (
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// check answers what was expected of a value, or "" where the value is right.
type check func(protoreflect.Value) string

// reading is the value that counts where a client wrote it another way, and why; the reason is empty where it is
// the value that was written.
type reading func(string) (value, why string)

// rule is what becomes of the values of some fields. Of a list it is for each item; of a map key, value and entry
// are for each entry. What is not refused by somebody who reads it is not refused here: see reader.
type rule struct {
	fields string // Message.field, separated by blanks
	must   string // in words, for docs/contracts/aks.md
	reader *reader
	value  check
	key    check
	entry  func(key, value string) string

	readAs    string // in words, for the same page
	read      reading
	readKey   reading
	readEntry func(key, value string) (string, string)
	number    func(int64) (int64, string)
}

// reader (docs/decisions/0009) is who refuses a value, and where its own rule stands.
type reader struct{ name, source string }

// byField are the rules by message and field.
var byField = sync.OnceValue(func() map[string]rule {
	out := map[string]rule{}
	for _, table := range [][]rule{nodeRules, kubeletRules} {
		for _, r := range table {
			for name := range strings.FieldsSeq(r.fields) {
				out[name] = r
			}
		}
	}
	return out
})

func ruleOf(fd protoreflect.FieldDescriptor) rule {
	return byField()[string(fd.Parent().Name())+"."+string(fd.Name())]
}

var (
	kubeletClient  = &reader{"kubelet", "client-go `rest.TLSConfigFor`, `cert.ParseCertsPEM`"}
	kubeletPair    = &reader{"kubelet", "`crypto/tls.X509KeyPair`"}
	bootstrapToken = &reader{"API server", "cluster-bootstrap `api.BootstrapTokenPattern`"}
	serverName     = &reader{"kubelet", "client-go `rest.DefaultServerURL` of the kubeconfig"}
	versionReader  = &reader{"berth", "which flags kubelet takes depends on it"}
	anchorReader   = &reader{"update-ca-certificates", "OpenSSL `PEM_read_bio_X509`"}
	worldReadable  = &reader{"berth", "`apiserver.crt` can be read by everybody on the machine"}
	cloudJSON      = &reader{"cloud provider", "`encoding/json`: azure.json can't hold it"}
	environment    = &reader{"credential provider", "azidentity and go-autorest `azure.EnvironmentFromFile`"}
	matchImages    = &reader{"kubelet", "`validateCredentialProviderConfig`, pkg/credentialprovider/plugin/config.go"}
	download       = &reader{"berth", "it is fetched from there: internal/artifact"}
	proxyReader    = &reader{"berth", "golang.org/x/net/http/httpproxy"}
	imageReader    = &reader{"containerd", "distribution/reference `ParseDockerRef`"}
	mirrorReader   = &reader{"containerd", "core/remotes/docker/config `parseHostsFile`"}
	rootReader     = &reader{"containerd", "cmd/containerd/server `CreateTopLevelDirectories`"}
	limits         = &reader{"systemd", "`config_parse_limit`, core/load-fragment.c"}
	portReader     = &reader{"kernel", "`ipv4_local_port_range`, net/ipv4/sysctl_net_ipv4.c"}
	corefileReader = &reader{"CoreDNS", "`normalizeZone`, core/dnsserver; caddyfile `Parse`"}
	healthReader   = &reader{"CoreDNS", "`parseBlock`, plugin/forward/setup.go"}
	forwardReader  = &reader{"CoreDNS", "`parse.HostPortOrFile`, plugin/pkg/parse"}
	sysctlReader   = &reader{"kernel", "`proc_dointvec_minmax` and `proc_doulongvec_minmax`"}
	slotsReader    = &reader{"kernel", "`nf_conntrack_hash_resize`, net/netfilter/nf_conntrack_core.c"}
)

var nodeRules = []rule{
	{fields: "Configuration.kubernetes_ca_cert", reader: kubeletClient,
		must:  "base64 of PEM with a certificate; Go can read each one",
		value: str(clientCAs), readAs: "without blanks in the base64, and without PEM blocks that are no certificates", read: onlyCertificates},
	{fields: "Configuration.kubernetes_version", reader: versionReader,
		must: "a version x.y.z", value: str(kubernetesVersion), readAs: "without blanks around it and a leading v", read: plainVersion},
	{fields: "Configuration.custom_ca_certs HttpProxyConfig.proxy_trusted_ca", reader: anchorReader,
		must:  "base64 of PEM with a certificate as OpenSSL reads it; a curve or serial that Go does not read is no reason",
		value: str(anchors), readAs: "as `kubernetes_ca_cert`; X509 CERTIFICATE as CERTIFICATE", read: onlyCertificates},
	{fields: "Configuration.bootstrap_profile_container_registry_server", reader: mirrorReader,
		must: "`host[:port][/path]`", value: str(registry), readAs: "without https:// and slashes around it", read: plainRegistryServer},
	{fields: "Configuration.cse_timeout", readAs: "900 where it is below 1 or above 21600", number: timeoutSeconds},

	{fields: "ApiServerConfig.api_server_name", reader: serverName,
		must:  "a DNS name or an IP address: no scheme, no port, no zone",
		value: str(host), readAs: "without blanks, and without the brackets of an IPv6 address", read: plainHost},
	{fields: "ApiServerConfig.api_server_public_key", reader: worldReadable,
		must: "no private key", value: str(noPrivateKey), readAs: "not set where it is no base64; nothing on the node reads it", read: base64OrNothing},
	{fields: "AuthConfig.service_principal_secret", readAs: "as it is where it is no base64", read: base64OrPlain},

	{fields: "BootstrappingConfig.tls_bootstrapping_token", reader: bootstrapToken,
		must:   "6 characters, a dot, 16 characters, each of `[a-z0-9]`",
		value:  pattern(`^[a-z0-9]{6}\.[a-z0-9]{16}$`, "a bootstrap token: 6 characters, a dot, 16 characters, each of [a-z0-9]"),
		readAs: "without blanks around it", read: trimmed},

	{fields: "CloudProviderConfig.backoff_exponent CloudProviderConfig.backoff_jitter CloudProviderConfig.rate_limit_qps CloudProviderConfig.rate_limit_qps_write",
		reader: cloudJSON, must: "a finite number", value: finite},

	{fields: "ContainerdConfig.containerd_version RuncConfig.runc_version", readAs: "not set where it is no version x.y.z: any will do", read: versionOrAny},
	{fields: "KubeBinaryConfig.kube_binary_url KubeBinaryConfig.custom_kube_binary_url KubeBinaryConfig.private_kube_binary_url " +
		"KubeBinaryConfig.linux_credential_provider_url NetworkConfig.cni_plugins_url NetworkConfig.vnet_cni_plugins_url ContainerdConfig.containerd_package_url RuncConfig.runc_package_url",
		reader: download,
		must: "https, http, `file:///path`, or an OCI reference: `oci://registry/repository:tag`; `oci://` may be missing where the registry has a dot, " +
			"a port, or is `localhost` (see [artifacts](../artifacts.md))",
		value: str(artifactURL), readAs: "without blanks around it", read: trimmed},
	{fields: "KubeBinaryConfig.pod_infra_container_image_url", reader: imageReader,
		must: "an image; the registry may be missing", value: str(image), readAs: "without blanks around it", read: trimmed},

	{fields: "Configuration.azure_private_registry_server", reader: matchImages,
		must: "`host[:port][/path]`", value: str(registry), readAs: "without https:// and slashes around it", read: plainRegistryServer},
	{fields: "CustomCloudConfig.container_registry_dns_suffix", reader: matchImages,
		must: "a DNS suffix; dots around it do not count", value: str(dnsSuffix)},
	{fields: "CustomCloudConfig.custom_env_json_content", reader: environment,
		must: "JSON, base64 or as it is", value: str(jsonMaybeBase64)},

	{fields: "SysctlConfig.net_core_somaxconn SysctlConfig.net_core_rmem_default SysctlConfig.net_core_rmem_max SysctlConfig.net_core_wmem_default " +
		"SysctlConfig.net_core_wmem_max SysctlConfig.net_core_optmem_max SysctlConfig.net_ipv4_tcp_keepalive_probes " +
		"SysctlConfig.net_ipv4_neigh_default_gc_thresh1 SysctlConfig.net_ipv4_neigh_default_gc_thresh2 SysctlConfig.net_ipv4_neigh_default_gc_thresh3 " +
		"SysctlConfig.net_netfilter_nf_conntrack_max SysctlConfig.fs_inotify_max_user_watches " +
		"SysctlConfig.fs_file_max SysctlConfig.fs_aio_max_nr SysctlConfig.fs_nr_open SysctlConfig.kernel_threads_max SysctlConfig.vm_max_map_count " +
		"SysctlConfig.vm_vfs_cache_pressure", reader: sysctlReader, must: "0 or more", value: atLeast(0)},
	{fields: "SysctlConfig.net_netfilter_nf_conntrack_buckets", reader: slotsReader, must: "1 to 536870400", value: within(1, 536870400),
		readAs: "rounded up to whole pages of slots, which are multiples of 512 where a page has 4 KiB", number: wholePages},
	{fields: "SysctlConfig.vm_swappiness", reader: sysctlReader, must: "0 to 200", value: upTo(200)},
	{fields: "SysctlConfig.net_ipv4_ip_local_port_range", reader: portReader,
		must: "two ports, blanks between them, the first 1024 or more (`net.ipv4.ip_unprivileged_port_start`) and not above the second", value: str(portRange)},
	{fields: "UlimitConfig.no_file", reader: limits, must: "a number, `soft:hard`, or `infinity`", value: str(limitOfCount),
		readAs: "without blanks around it", read: trimmed},
	{fields: "UlimitConfig.max_locked_memory", reader: limits, must: "a size, e.g. `64M`, `soft:hard`, or `infinity`", value: str(limitOfSize),
		readAs: "without blanks around it", read: trimmed},

	{fields: "HttpProxyConfig.http_proxy HttpProxyConfig.https_proxy Configuration.private_egress_proxy_address", reader: proxyReader,
		must: "the URL of a proxy; the scheme may be missing", value: str(proxyURL), readAs: "without blanks around it", read: trimmed},

	{fields: "LocalDnsProfile.cpu_limit_in_milli_cores", readAs: "2000 where it is 0 or less", number: defaultFor(2000)},
	{fields: "LocalDnsProfile.memory_limit_in_mb", readAs: "128 where it is 0 or less", number: defaultFor(128)},
	{fields: "LocalDnsProfile.hosts_plugin_refresh_interval_in_seconds", readAs: "5 where it is less", number: refreshSeconds},
	{fields: "LocalDnsProfile.vnet_dns_overrides LocalDnsProfile.kube_dns_overrides", reader: corefileReader,
		must: "zones: names without blanks and without a sign that means something in a Corefile; each once, with or without the dot at its end, " +
			"and not `health-check.localdns.local`, which is the server's own", key: str(dnsZone)},
	{fields: "LocalDnsHealthCheck.duration", reader: healthReader, must: "a Go duration above 0", value: str(healthDuration)},
	{fields: "LocalDnsHealthCheck.domain", reader: healthReader, must: "a name", value: str(dnsZone)},
	{fields: "ClusterNetworkConfig.core_dns_service_ip", reader: forwardReader, must: "an IP address", value: str(forwardTo),
		readAs: "without blanks around it", read: trimmed},
	{fields: "LocalDnsOverrides.forward_policy", readAs: "Sequential where it is not exactly Random or RoundRobin",
		read: anyOtherIs("Sequential", "Sequential", "Random", "RoundRobin")},
	{fields: "LocalDnsOverrides.protocol", readAs: "PreferUDP where it is not exactly ForceTCP", read: anyOtherIs("PreferUDP", "PreferUDP", "ForceTCP")},
	{fields: "LocalDnsOverrides.forward_destination", readAs: "VnetDNS where it is not exactly ClusterCoreDNS",
		read: anyOtherIs("VnetDNS", "VnetDNS", "ClusterCoreDNS")},
}
