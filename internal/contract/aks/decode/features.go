package decode

import (
	"slices"
	"strings"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// condition says whether anything reads a part of a configuration.
type condition func(*aksnodeconfigv1.Configuration) bool

// features are the parts of the document that are read on a condition. While it does not hold their values are
// nobody's, and none is refused.
var features = map[string]condition{
	"kubernetes_ca_cert":   joins,
	"api_server_config":    joins,
	"auth_config":          joins,
	"cluster_config":       joins,
	"bootstrapping_config": joins,

	"kubelet_config.kubelet_node_labels":         joins,
	"kubelet_config.kubelet_client_key":          withoutToken,
	"kubelet_config.kubelet_client_cert_content": withoutToken,
	"kubelet_config.kubelet_config_file_config":  readsFile,

	"kube_binary_config.kube_binary_url":               archiveOf((*aksnodeconfigv1.KubeBinaryConfig).GetKubeBinaryUrl),
	"kube_binary_config.private_kube_binary_url":       archiveOf((*aksnodeconfigv1.KubeBinaryConfig).GetPrivateKubeBinaryUrl),
	"kube_binary_config.linux_credential_provider_url": provided,
	"containerd_config.containerd_version": func(c *aksnodeconfigv1.Configuration) bool {
		return c.GetContainerdConfig().GetContainerdPackageUrl() != "" || c.GetContainerdConfig().GetContainerdDownloadUrlBase() != ""
	},
	"runc_config.runc_version":                                  func(c *aksnodeconfigv1.Configuration) bool { return c.GetRuncConfig().GetRuncPackageUrl() != "" },
	"custom_cloud_config.custom_env_json_content":               func(c *aksnodeconfigv1.Configuration) bool { return joins(c) && CustomCloud(c) },
	"local_dns_profile":                                         localDNS,
	"cluster_config.cluster_network_config.core_dns_service_ip": localDNS,
	"custom_search_domain_config":                               joins,
	"http_proxy_config.no_proxy_entries": func(c *aksnodeconfigv1.Configuration) bool {
		return proxied(c) || c.GetPrivateEgressProxyAddress() != ""
	},
	"private_egress_proxy_address":  func(c *aksnodeconfigv1.Configuration) bool { return !proxied(c) },
	"azure_private_registry_server": provided,
	"network_config.vnet_cni_plugins_url": func(c *aksnodeconfigv1.Configuration) bool {
		return c.GetNetworkConfig().GetNetworkPlugin() == aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_AZURE
	},
}

func proxied(c *aksnodeconfigv1.Configuration) bool {
	return c.GetHttpProxyConfig().GetHttpProxy() != "" || c.GetHttpProxyConfig().GetHttpsProxy() != ""
}

func localDNS(c *aksnodeconfigv1.Configuration) bool {
	return joins(c) && c.GetLocalDnsProfile().GetEnableLocalDns()
}

func joins(c *aksnodeconfigv1.Configuration) bool { return !c.GetPreProvisionOnly() }

func withoutToken(c *aksnodeconfigv1.Configuration) bool {
	return joins(c) && c.GetBootstrappingConfig().GetTlsBootstrappingToken() == ""
}

// readsFile: with --config kubelet reads a file of the image.
func readsFile(c *aksnodeconfigv1.Configuration) bool {
	k := c.GetKubeletConfig()
	file, named := k.GetKubeletFlags()["--config"]
	return joins(c) && k.GetEnableKubeletConfigFile() && (!named || file == "/etc/default/kubeletconfig.json")
}

func provided(c *aksnodeconfigv1.Configuration) bool {
	flags := c.GetKubeletConfig().GetKubeletFlags()
	return joins(c) && flags[providerConfigFlag] != "" && flags[providerBinFlag] != ""
}

// KubeURL is the archive of kubelet that counts: one that somebody names on purpose is not replaced by the stock
// one where it fails.
func KubeURL(c *aksnodeconfigv1.Configuration) string {
	k := c.GetKubeBinaryConfig()
	urls := []string{k.GetCustomKubeBinaryUrl(), k.GetPrivateKubeBinaryUrl(), k.GetKubeBinaryUrl()}
	if i := slices.IndexFunc(urls, func(u string) bool { return u != "" }); i >= 0 {
		return urls[i]
	}
	return ""
}

func archiveOf(get func(*aksnodeconfigv1.KubeBinaryConfig) string) condition {
	return func(c *aksnodeconfigv1.Configuration) bool { return get(c.GetKubeBinaryConfig()) == KubeURL(c) }
}

// CustomCloud says whether the configuration is of a cloud with endpoints of its own.
func CustomCloud(c *aksnodeconfigv1.Configuration) bool {
	return strings.EqualFold(c.GetCustomCloudConfig().GetCustomCloudEnvName(), "akscustom")
}
