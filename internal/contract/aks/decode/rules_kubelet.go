package decode

import "strings"

// kubelet of Kubernetes 1.36 is quoted; its rules have not changed since 1.26 where nothing else is said.
var (
	kubeletValidation = &reader{"kubelet", "`ValidateKubeletConfiguration`, pkg/kubelet/apis/config/validation"}
	kubeletDecoding   = &reader{"kubelet", "pkg/kubelet/kubeletconfig/util/codec"}
	kubeletDuration   = &reader{"kubelet", "`metav1.Duration`: `time.ParseDuration`"}
	kubeletEviction   = &reader{"kubelet", "`ParseThresholdConfig`, pkg/kubelet/eviction/helpers.go"}
	kubeletReserved   = &reader{"kubelet", "`parseResourceList`, cmd/kubelet/app/server.go"}
	kubeletLogs       = &reader{"kubelet", "`parseMaxSize`, pkg/kubelet/logs/container_log_manager.go"}
	kubeletServer     = &reader{"kubelet", "`ListenAndServeKubeletServer`, pkg/kubelet/server"}
	kubeletCPU        = &reader{"kubelet", "`cpumanager.NewManager`, pkg/kubelet/cm/cpumanager"}
	kubeletAuthz      = &reader{"kubelet", "`BuildAuthz`, cmd/kubelet/app/auth.go"}
	kubeletCiphers    = &reader{"kubelet", "component-base `flag.TLSCipherSuites`"}
	kubeletLabels     = &reader{"kubelet", "`ValidateKubeletFlags`, cmd/kubelet/app/options"}
	kernelPath        = &reader{"kernel, kubelet", "path_resolution(7); `InitializeTLS`, cmd/kubelet/app/server.go"}
	kubeletParsing    = &reader{"kubelet", "pflag with component-base `flag.WordSepNormalizeFunc`"}
)

var kubeletRules = []rule{
	{fields: "KubeletConfig.kubelet_flags", reader: kubeletParsing,
		must: "a flag's name with its dashes; values: below", key: pattern(`^--[A-Za-z0-9][A-Za-z0-9.-]*$`, "a flag with its leading dashes"),
		entry: kubeletFlag, readAs: "names with - for _, and -v as --v; of two spellings the last in the alphabet counts; values: below",
		readKey: flagName, readEntry: flagReading},
	{fields: "KubeletConfig.kubelet_node_labels", reader: kubeletLabels,
		must: "valid labels; of `kubernetes.io` and `k8s.io` only those with which kubelet starts",
		key:  str(labelKey), value: str(labelValue), readAs: "without blanks around key and value", readKey: trimmed, read: trimmed},
	{fields: "KubeletConfig.kubelet_client_key", reader: kubeletPair,
		must: "base64 of a PEM private key, not encrypted; it belongs to the certificate", value: str(privateKey)},
	{fields: "KubeletConfig.kubelet_client_cert_content", reader: kubeletPair,
		must: "base64 of PEM with a certificate that Go can read", value: str(clientCertificate)},
	{fields: "KubeletConfig.container_data_dir", reader: rootReader,
		must: "not containerd's directory for state, `/run/containerd`", value: str(notState), readAs: "absolute, without . and .. and a slash at its end", read: under("/")},

	{fields: "KubeletConfigFileConfig.kind", reader: kubeletDecoding, must: "KubeletConfiguration", value: oneOf("KubeletConfiguration")},
	{fields: "KubeletConfigFileConfig.api_version", reader: kubeletDecoding, must: "kubelet.config.k8s.io/v1beta1", value: oneOf("kubelet.config.k8s.io/v1beta1")},
	{fields: "KubeletConfigFileConfig.address", reader: kubeletServer, must: "an IP address", value: str(sloppyIP)},
	{fields: "KubeletConfigFileConfig.read_only_port", reader: kubeletValidation, must: "0 to 65535", value: upTo(65535)},
	{fields: "KubeletConfigFileConfig.tls_cert_file KubeletConfigFileConfig.tls_private_key_file", reader: kernelPath,
		must: "a path without NUL; both or neither", value: str(pathName), readAs: "below /etc/default where it is relative, as kubelet reads it", read: under("/etc/default")},
	{fields: "KubeletConfigFileConfig.tls_cipher_suites", reader: kubeletCiphers,
		must: "names of cipher suites as Go has them, and the old ones of two CHACHA20_POLY1305 suites", value: str(cipherSuite)},
	{fields: "KubeletConfigFileConfig.event_record_qps KubeletConfigFileConfig.max_pods", reader: kubeletValidation, must: "0 or more", value: atLeast(0)},
	{fields: "KubeletConfigFileConfig.streaming_connection_idle_timeout KubeletConfigFileConfig.node_status_update_frequency " +
		"KubeletConfigFileConfig.node_status_report_frequency KubeletWebhookAuthentication.cache_ttl " +
		"KubeletWebhookAuthorization.cache_authorized_ttl KubeletWebhookAuthorization.cache_unauthorized_ttl",
		reader: kubeletDuration, must: "Go durations: `30s`, `1m30s`", value: str(duration)},
	{fields: "KubeletConfigFileConfig.image_gc_high_threshold_percent KubeletConfigFileConfig.image_gc_low_threshold_percent",
		reader: kubeletValidation, must: "0 to 100, low below high; without a value low is 80, high 85", value: upTo(100)},
	{fields: "KubeletConfigFileConfig.cpu_manager_policy", reader: kubeletCPU, must: "none, static", value: oneOf("none", "static")},
	{fields: "KubeletConfigFileConfig.topology_manager_policy", reader: kubeletValidation, must: "none, best-effort, restricted, single-numa-node",
		value: oneOf("none", "best-effort", "restricted", "single-numa-node")},
	{fields: "KubeletConfigFileConfig.cpu_cfs_quota_period", reader: kubeletValidation, must: "1ms to 1s", value: str(quotaPeriod)},
	{fields: "KubeletConfigFileConfig.eviction_hard KubeletConfigFileConfig.eviction_soft", reader: kubeletEviction,
		must: "kubelet's signals; quantities above 0, or percentages; each soft one with a grace period unless it is 0% or 100%",
		key:  oneOf(evictionSignals...), value: str(threshold)},
	{fields: "KubeletConfigFileConfig.eviction_soft_grace_period", reader: kubeletEviction,
		must: "kubelet's signals; Go durations, none negative", key: oneOf(evictionSignals...), value: str(gracePeriod)},
	{fields: "KubeletConfigFileConfig.container_log_max_size", reader: kubeletLogs, must: "a quantity", value: str(quantity)},
	{fields: "KubeletConfigFileConfig.container_log_max_files", reader: kubeletValidation, must: "2 or more", value: atLeast(2)},
	{fields: "KubeletConfigFileConfig.system_reserved KubeletConfigFileConfig.kube_reserved", reader: kubeletReserved,
		must: "quantities, none negative, of: " + strings.Join(reservable, ", "), key: oneOf(reservable...), value: str(notNegative)},
	{fields: "KubeletConfigFileConfig.enforce_node_allocatable", reader: kubeletValidation, must: "each one once: " + strings.Join(enforcements, ", "),
		value: oneOf(enforcements...)},
	{fields: "KubeletAuthorization.mode", reader: kubeletAuthz, must: "AlwaysAllow, Webhook", value: oneOf("AlwaysAllow", "Webhook")},
}

var enforcements = []string{"none", "pods", "system-reserved", "kube-reserved", "system-reserved-compressible", "kube-reserved-compressible"}

var evictionSignals = []string{
	"memory.available", "allocatableMemory.available",
	"nodefs.available", "nodefs.inodesFree",
	"imagefs.available", "imagefs.inodesFree",
	"containerfs.available", "containerfs.inodesFree",
	"pid.available",
}

var reservable = []string{"cpu", "memory", "ephemeral-storage", "pid"}
