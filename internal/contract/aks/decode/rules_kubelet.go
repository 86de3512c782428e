package decode

// kubeletRules are what KubeletConfiguration's own validation refuses, as far as that
// does not depend on kubelet's version.
var kubeletRules = map[string]rule{
	"KubeletConfig.kubelet_flags":               {key: pattern(`^--[a-z0-9][a-z0-9-]*$`, "a flag with its leading dashes"), entry: kubeletFlag},
	"KubeletConfig.kubelet_node_labels":         {key: str(labelKey), value: str(labelValue)},
	"KubeletConfig.kubelet_client_key":          value(str(privateKey)),
	"KubeletConfig.kubelet_client_cert_content": value(str(certificates)),
	"KubeletConfig.container_data_dir":          value(str(cleanPath)),

	"KubeletConfigFileConfig.kind":                              value(oneOf("KubeletConfiguration")),
	"KubeletConfigFileConfig.api_version":                       value(oneOf("kubelet.config.k8s.io/v1beta1")),
	"KubeletConfigFileConfig.static_pod_path":                   value(str(absolute)),
	"KubeletConfigFileConfig.address":                           value(str(ip)),
	"KubeletConfigFileConfig.read_only_port":                    value(upTo(65535)),
	"KubeletConfigFileConfig.tls_cert_file":                     value(str(cleanPath)),
	"KubeletConfigFileConfig.tls_private_key_file":              value(str(cleanPath)),
	"KubeletConfigFileConfig.tls_cipher_suites":                 value(str(cipherSuite)),
	"KubeletConfigFileConfig.event_record_qps":                  value(atLeast(0)),
	"KubeletConfigFileConfig.cluster_domain":                    value(str(zone)),
	"KubeletConfigFileConfig.cluster_dns":                       value(str(ip)),
	"KubeletConfigFileConfig.streaming_connection_idle_timeout": value(str(duration)),
	"KubeletConfigFileConfig.node_status_update_frequency":      value(str(duration)),
	"KubeletConfigFileConfig.node_status_report_frequency":      value(str(duration)),
	"KubeletConfigFileConfig.image_gc_high_threshold_percent":   value(upTo(100)),
	"KubeletConfigFileConfig.image_gc_low_threshold_percent":    value(upTo(100)),
	"KubeletConfigFileConfig.cpu_manager_policy":                value(oneOf("none", "static")),
	"KubeletConfigFileConfig.topology_manager_policy":           value(oneOf("none", "best-effort", "restricted", "single-numa-node")),
	"KubeletConfigFileConfig.max_pods":                          value(atLeast(0)),
	"KubeletConfigFileConfig.pod_pids_limit":                    value(atLeast(-1)),
	"KubeletConfigFileConfig.resolv_conf":                       value(str(absolute)),
	"KubeletConfigFileConfig.cpu_cfs_quota_period":              value(str(quotaPeriod)),
	"KubeletConfigFileConfig.eviction_hard":                     {key: oneOf(evictionSignals...), value: str(threshold)},
	"KubeletConfigFileConfig.eviction_soft":                     {key: oneOf(evictionSignals...), value: str(threshold)},
	"KubeletConfigFileConfig.eviction_soft_grace_period":        {key: oneOf(evictionSignals...), value: str(duration)},
	"KubeletConfigFileConfig.eviction_max_pod_grace_period":     value(atLeast(0)),
	"KubeletConfigFileConfig.container_log_max_size":            value(str(quantity)),
	"KubeletConfigFileConfig.container_log_max_files":           value(atLeast(2)),
	"KubeletConfigFileConfig.system_reserved":                   {key: oneOf(reservable...), value: str(quantity)},
	"KubeletConfigFileConfig.kube_reserved":                     {key: oneOf(reservable...), value: str(quantity)},
	"KubeletConfigFileConfig.enforce_node_allocatable":          value(oneOf("none", "pods", "system-reserved", "kube-reserved", "system-reserved-compressible", "kube-reserved-compressible")),
	"KubeletConfigFileConfig.kube_reserved_cgroup":              value(oneOf("/kubereserved.slice", "/system.slice")),
	"KubeletConfigFileConfig.system_reserved_cgroup":            value(oneOf("/kubereserved.slice", "/system.slice")),

	"KubeletX509Authentication.client_ca_file":           value(str(absolute)),
	"KubeletWebhookAuthentication.cache_ttl":             value(str(duration)),
	"KubeletAuthorization.mode":                          value(oneOf("AlwaysAllow", "Webhook")),
	"KubeletWebhookAuthorization.cache_authorized_ttl":   value(str(duration)),
	"KubeletWebhookAuthorization.cache_unauthorized_ttl": value(str(duration)),
}

var evictionSignals = []string{
	"memory.available", "allocatableMemory.available",
	"nodefs.available", "nodefs.inodesFree",
	"imagefs.available", "imagefs.inodesFree",
	"containerfs.available", "containerfs.inodesFree",
	"pid.available",
}

var reservable = []string{"cpu", "memory", "ephemeral-storage", "pid"}
