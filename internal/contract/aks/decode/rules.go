package decode

import (
	"google.golang.org/protobuf/reflect/protoreflect"
)

// check answers what was expected of a value, or "" where the value is right.
type check func(protoreflect.Value) string

// rule is what a field's values must be. Of a list, value is for each item; of a map, key, value and entry
// are for each entry. Text without a rule of its own is on one line: it goes into files that have lines.
type rule struct {
	value check
	key   check
	entry func(key, value string) string
}

func ruleOf(fd protoreflect.FieldDescriptor) rule {
	message := string(fd.Parent().Name())
	name := message + "." + string(fd.Name())
	if r, ok := nodeRules[name]; ok {
		return r
	}
	if r, ok := kubeletRules[name]; ok {
		return r
	}
	if message == "SysctlConfig" && fd.Kind() == protoreflect.Int32Kind {
		return value(atLeast(0))
	}
	if fd.Kind() == protoreflect.StringKind {
		return value(str(oneLine))
	}
	return rule{}
}

func value(c check) rule { return rule{value: c} }

// nodeRules are keyed by message and field.
var nodeRules = map[string]rule{
	"Configuration.kubernetes_ca_cert":                          value(str(certificates)),
	"Configuration.kubernetes_version":                          value(str(kubernetesVersion)),
	"Configuration.linux_admin_username":                        value(pattern(`^[A-Za-z_][A-Za-z0-9_-]{0,31}$`, "a login name: letters, digits, _ and -, at most 32")),
	"Configuration.message_of_the_day":                          value(str(base64Text)),
	"Configuration.custom_ca_certs":                             value(str(certificates)),
	"Configuration.outbound_command":                            value(str(oneLine)),
	"Configuration.bootstrap_profile_container_registry_server": value(str(registry)),
	"Configuration.cse_timeout":                                 value(upTo(longestTimeout)),
	"Configuration.enabled_features":                            {key: pattern(`^[A-Za-z_][A-Za-z0-9_]*$`, "the name of an environment variable"), value: str(oneLine)},

	"ApiServerConfig.api_server_name":       value(str(host)),
	"ApiServerConfig.api_server_public_key": value(str(certificates)),
	"AuthConfig.service_principal_secret":   value(str(base64Text)),

	"BootstrappingConfig.tls_bootstrapping_token":                              value(pattern(`^[a-z0-9]{6}\.[a-z0-9]{16}$`, "a bootstrap token: 6 characters, a dot, 16 characters, each of [a-z0-9]")),
	"BootstrappingConfig.secure_tls_bootstrapping_custom_client_download_url":  value(str(webURL)),
	"BootstrappingConfig.secure_tls_bootstrapping_validate_kubeconfig_timeout": value(str(duration)),
	"BootstrappingConfig.secure_tls_bootstrapping_get_access_token_timeout":    value(str(duration)),
	"BootstrappingConfig.secure_tls_bootstrapping_get_instance_data_timeout":   value(str(duration)),
	"BootstrappingConfig.secure_tls_bootstrapping_get_nonce_timeout":           value(str(duration)),
	"BootstrappingConfig.secure_tls_bootstrapping_get_attested_data_timeout":   value(str(duration)),
	"BootstrappingConfig.secure_tls_bootstrapping_get_credential_timeout":      value(str(duration)),

	"ClusterNetworkConfig.core_dns_service_ip":        value(str(ip)),
	"LoadBalancerConfig.max_load_balancer_rule_count": value(atLeast(0)),
	"CloudProviderConfig.backoff_mode":                value(oneOf("v1", "v2")),
	"CloudProviderConfig.backoff_retries":             value(atLeast(0)),
	"CloudProviderConfig.backoff_exponent":            value(finite),
	"CloudProviderConfig.backoff_duration":            value(atLeast(0)),
	"CloudProviderConfig.backoff_jitter":              value(finite),
	"CloudProviderConfig.rate_limit_qps":              value(finite),
	"CloudProviderConfig.rate_limit_qps_write":        value(finite),
	"CloudProviderConfig.rate_limit_bucket":           value(atLeast(0)),
	"CloudProviderConfig.rate_limit_bucket_write":     value(atLeast(0)),

	"ContainerdConfig.containerd_package_url":         value(str(artifactURL)),
	"ContainerdConfig.containerd_version":             value(str(programVersion)),
	"RuncConfig.runc_version":                         value(str(programVersion)),
	"CustomCloudConfig.container_registry_dns_suffix": value(str(dnsSuffix)),
	"CustomCloudConfig.repo_depot_endpoint":           value(str(webURL)),
	"CustomCloudConfig.custom_env_json_content":       value(str(jsonMaybeBase64)),

	"CustomLinuxOsConfig.swap_file_size":               value(atLeast(0)),
	"CustomLinuxOsConfig.transparent_hugepage_support": value(oneOf("always", "madvise", "never")),
	"CustomLinuxOsConfig.transparent_defrag":           value(oneOf("always", "defer", "defer+madvise", "madvise", "never")),
	"RuncConfig.runc_package_url":                      value(str(artifactURL)),
	"SysctlConfig.net_ipv4_ip_local_port_range":        value(str(portRange)),
	"SysctlConfig.vm_swappiness":                       value(upTo(200)),
	"UlimitConfig.no_file":                             value(str(limitOfCount)),
	"UlimitConfig.max_locked_memory":                   value(str(limitOfSize)),
	"CustomSearchDomainConfig.domain_name":             value(str(dnsName)),
	"GpuConfig.gpu_instance_profile":                   value(oneOf("MIG1g", "MIG2g", "MIG3g", "MIG4g", "MIG7g")),

	"HttpProxyConfig.http_proxy":       value(str(proxyURL)),
	"HttpProxyConfig.https_proxy":      value(str(proxyURL)),
	"HttpProxyConfig.no_proxy_entries": value(pattern(`^[^"'[:cntrl:]]*$`, "a name, an address or a CIDR, without quotes")),
	"HttpProxyConfig.proxy_trusted_ca": value(str(certificates)),

	"KubeBinaryConfig.kube_binary_url":               value(str(artifactURL)),
	"KubeBinaryConfig.custom_kube_binary_url":        value(str(artifactURL)),
	"KubeBinaryConfig.private_kube_binary_url":       value(str(artifactURL)),
	"KubeBinaryConfig.pod_infra_container_image_url": value(str(image)),
	"KubeBinaryConfig.linux_credential_provider_url": value(str(artifactURL)),
	"NetworkConfig.vnet_cni_plugins_url":             value(str(webURL)),
	"NetworkConfig.cni_plugins_url":                  value(str(artifactURL)),
	"NetworkConfig.standard_secondary_nic_count":     value(atLeast(0)),

	"LocalDnsProfile.cpu_limit_in_milli_cores":                 value(atLeast(1)),
	"LocalDnsProfile.memory_limit_in_mb":                       value(atLeast(1)),
	"LocalDnsProfile.vnet_dns_overrides":                       {key: str(zone)},
	"LocalDnsProfile.kube_dns_overrides":                       {key: str(zone)},
	"LocalDnsProfile.critical_fqdns":                           value(str(dnsNameOrBlank)),
	"LocalDnsProfile.hosts_plugin_refresh_interval_in_seconds": value(atLeast(0)),
	"LocalDnsOverrides.query_logging":                          value(oneOf("Error", "Log")),
	"LocalDnsOverrides.protocol":                               value(oneOf("ForceTCP", "PreferUDP")),
	"LocalDnsOverrides.forward_destination":                    value(oneOf("ClusterCoreDNS", "VnetDNS")),
	"LocalDnsOverrides.forward_policy":                         value(oneOf("Random", "RoundRobin", "Sequential")),
	"LocalDnsOverrides.max_concurrent":                         value(atLeast(0)),
	"LocalDnsOverrides.cache_duration_in_seconds":              value(atLeast(0)),
	"LocalDnsOverrides.serve_stale_duration_in_seconds":        value(atLeast(0)),
	"LocalDnsOverrides.serve_stale":                            value(oneOf("Disable", "Immediate", "Verify")),
	"LocalDnsHealthCheck.duration":                             value(str(duration)),
	"LocalDnsHealthCheck.domain":                               value(str(zone)),
}
