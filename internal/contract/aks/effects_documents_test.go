package aks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/gpu"
)

type config = aksnodeconfigv1.Configuration

// otherSample are the values of fields of which the full sample has the default, or which another field
// goes before.
var otherSample = map[string]string{
	"version": "v1", "kubernetes_version": "1.35.2",
	"api_server_config.api_server_name":                                              "other.example",
	"auth_config.subscription_id":                                                    "00000000-0000-0000-0000-000000000009",
	"bootstrapping_config.tls_bootstrapping_token":                                   "fedcba.0123456789abcdef",
	"bootstrapping_config.bootstrapping_auth_method":                                 "BOOTSTRAPPING_AUTH_METHOD_AZURE_MSI",
	"bootstrapping_config.secure_tls_bootstrapping_aad_resource":                     "00000000-0000-0000-0000-00000000000a",
	"cluster_config.resource_group":                                                  "MC_other",
	"cluster_config.location":                                                        "chinaeast2",
	"cluster_config.cluster_network_config.vnet_name":                                "vnet2",
	"cluster_config.cluster_network_config.route_table":                              "routes2",
	"cluster_config.cluster_network_config.core_dns_service_ip":                      "10.1.0.10",
	"cluster_config.load_balancer_config.exclude_master_from_standard_load_balancer": "false",
	"cluster_config.cloud_provider_config.backoff":                                   "false",
	"cluster_config.cloud_provider_config.backoff_mode":                              "v1",
	"cluster_config.cloud_provider_config.backoff_retries":                           "7",
	"cluster_config.cloud_provider_config.backoff_duration":                          "6",
	"cluster_config.cloud_provider_config.rate_limit":                                "false",
	"cluster_config.cloud_provider_config.rate_limit_qps":                            "11",
	"cluster_config.cloud_provider_config.rate_limit_qps_write":                      "11",
	"cluster_config.cloud_provider_config.rate_limit_bucket":                         "101",
	"cluster_config.cloud_provider_config.rate_limit_bucket_write":                   "101",
	"kubelet_config.kubelet_disk_type":                                               "KUBELET_DISK_TEMP_DISK",
	"pre_provision_only":                                                             "true",
	"gpu_config.enable_managed_gpu_dra":                                              "true",
	"needs_cgroupv2":                                                                 "false",
	"linux_admin_username":                                                           "operator",
	"provision_output":                                                               "/var/log/azure/other.log",
	"enable_ssh":                                                                     "false",
	"cse_timeout":                                                                    "300",
	"vm_size":                                                                        "Standard_NC4as_T4_v3",
	"local_dns_profile.cpu_limit_in_milli_cores":                                     "1000",
	"local_dns_profile.memory_limit_in_mb":                                           "256",
	"local_dns_profile.hosts_plugin_refresh_interval_in_seconds":                     "60",
	"custom_linux_os_config.sysctl_config.net_core_somaxconn":                        "32768",
	"custom_linux_os_config.sysctl_config.net_ipv4_tcp_max_syn_backlog":              "32768",
	"custom_linux_os_config.sysctl_config.net_ipv4_neigh_default_gc_thresh1":         "4097",
	"custom_linux_os_config.sysctl_config.net_ipv4_neigh_default_gc_thresh2":         "8193",
	"custom_linux_os_config.sysctl_config.net_ipv4_neigh_default_gc_thresh3":         "16385",
}

// settings are what a field depends on, by the beginning of its path; all that fit are made, short ones first.
var settings = map[string]func(*config, *component.Facts){
	kubeletFile: func(c *config, _ *component.Facts) {
		c.KubeletConfig = &aksnodeconfigv1.KubeletConfig{EnableKubeletConfigFile: true, KubeletConfigFileConfig: &aksnodeconfigv1.KubeletConfigFileConfig{}}
	},
	kubeletFile + "tls_cert_file":        servingPair,
	kubeletFile + "tls_private_key_file": servingPair,
	kubeletFile + "eviction_soft":        softEviction,
	"kubelet_config.kubelet_client_":     clientCertificate,
	"kubelet_config.enable_kubelet_config_file": func(c *config, _ *component.Facts) {
		c.KubeletConfig = &aksnodeconfigv1.KubeletConfig{KubeletConfigFileConfig: &aksnodeconfigv1.KubeletConfigFileConfig{SeccompDefault: true}}
	},
	"kube_binary_config.linux_credential_provider_url": providerFlags,
	"service_account_image_pull_profile.": func(c *config, f *component.Facts) {
		providerFlags(c, f)
		c.ServiceAccountImagePullProfile = &aksnodeconfigv1.ServiceAccountImagePullProfile{Enabled: true}
	},
	"service_account_image_pull_profile.enabled": func(c *config, _ *component.Facts) {
		c.ServiceAccountImagePullProfile.Enabled = false
	},
	"custom_cloud_config.": func(c *config, f *component.Facts) {
		providerFlags(c, f)
		c.CustomCloudConfig = &aksnodeconfigv1.CustomCloudConfig{CustomCloudEnvName: "akscustom"}
	},
	"custom_cloud_config.custom_cloud_env_name":                 func(c *config, _ *component.Facts) { c.CustomCloudConfig = nil },
	"cluster_config.cluster_network_config.core_dns_service_ip": localNames,
	"cluster_config.cloud_provider_config.backoff_exponent":     firstBackoff,
	"cluster_config.cloud_provider_config.backoff_jitter":       firstBackoff,
	"bootstrapping_config.bootstrapping_auth_method":            clientCertificate,
	"bootstrapping_config.secure_tls_bootstrapping_":            attestation,
	"containerd_config.containerd_download_url_base": func(c *config, _ *component.Facts) {
		c.ContainerdConfig = &aksnodeconfigv1.ContainerdConfig{ContainerdVersion: "2.3.1"}
	},
	"custom_cloud_config.repo_depot_endpoint": func(_ *config, f *component.Facts) { f.Apt, f.Ubuntu = true, "noble" },
	"azure_private_registry_server":           providerFlags,
	"enable_unattended_upgrade":               func(_ *config, f *component.Facts) { f.Apt = true },
	"containerd_config.containerd_version": func(c *config, _ *component.Facts) {
		c.ContainerdConfig = &aksnodeconfigv1.ContainerdConfig{ContainerdPackageUrl: "https://packages.example/containerd.tar.gz"}
	},
	"runc_config.runc_version": func(c *config, _ *component.Facts) {
		c.RuncConfig = &aksnodeconfigv1.RuncConfig{RuncPackageUrl: "https://packages.example/runc"}
	},
	"custom_search_domain_config.": func(c *config, f *component.Facts) {
		f.Resolved = true
		c.CustomSearchDomainConfig = &aksnodeconfigv1.CustomSearchDomainConfig{DomainName: "corp.test", RealmUser: "user", RealmPassword: "word"}
	},
	"custom_linux_os_config.enable_swap_config": func(c *config, _ *component.Facts) {
		besideSwap(c)
		c.CustomLinuxOsConfig = &aksnodeconfigv1.CustomLinuxOsConfig{SwapFileSize: 1500}
	},
	"custom_linux_os_config.swap_file_size": func(c *config, _ *component.Facts) {
		besideSwap(c)
		c.CustomLinuxOsConfig = &aksnodeconfigv1.CustomLinuxOsConfig{EnableSwapConfig: true}
	},
	"http_proxy_config.no_proxy_entries": func(c *config, _ *component.Facts) {
		c.HttpProxyConfig = &aksnodeconfigv1.HttpProxyConfig{HttpsProxy: "https://proxy.example:3129/"}
	},
	"gpu_config.": func(c *config, f *component.Facts) {
		imageOfDrivers(f)
		c.VmSize, c.GpuConfig = "Standard_NC24ads_A100_v4", &aksnodeconfigv1.GpuConfig{EnableNvidia: proto.Bool(true)}
	},
	"gpu_config.mig_strategy": func(c *config, _ *component.Facts) {
		c.GpuConfig.EnableManagedGpu, c.GpuConfig.GpuInstanceProfile = true, "MIG1g"
	},
	"gpu_config.enable_nvidia": func(c *config, _ *component.Facts) { c.GpuConfig = nil },
	"vm_size": func(c *config, f *component.Facts) {
		imageOfDrivers(f)
		c.GpuConfig = &aksnodeconfigv1.GpuConfig{EnableNvidia: proto.Bool(true), ConfigGpuDriver: true}
	},
	"network_config.vnet_cni_plugins_url": func(c *config, _ *component.Facts) {
		c.NetworkConfig = &aksnodeconfigv1.NetworkConfig{NetworkPlugin: aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_AZURE}
	},
	"enable_hosts_config_agent": func(c *config, f *component.Facts) {
		f.APIServer = netip.MustParseAddr("10.224.0.4")
		c.ApiServerConfig.ApiServerName = "a.privatelink.westeurope.azmk8s.io"
	},
	"imds_restriction_config.insert": func(c *config, _ *component.Facts) {
		c.ImdsRestrictionConfig = &aksnodeconfigv1.ImdsRestrictionConfig{EnableImdsRestriction: true}
	},
	"local_dns_profile.": func(c *config, _ *component.Facts) {
		c.LocalDnsProfile = &aksnodeconfigv1.LocalDnsProfile{EnableLocalDns: true}
	},
	"local_dns_profile.enable_local_dns": func(c *config, _ *component.Facts) { c.LocalDnsProfile = nil },
	"local_dns_profile.critical_fqdns":   hostsPlugin,
	"local_dns_profile.hosts_plugin_":    hostsPlugin,
	"local_dns_profile.vnet_dns_overrides.*.": func(c *config, _ *component.Facts) {
		c.LocalDnsProfile.VnetDnsOverrides = oneZone()
	},
	"local_dns_profile.kube_dns_overrides.*.": func(c *config, _ *component.Facts) {
		c.LocalDnsProfile.KubeDnsOverrides = oneZone()
	},
}

// imageOfDrivers is an image of the cloud for machines with GPUs.
func imageOfDrivers(f *component.Facts) {
	f.Ubuntu = "noble"
	f.Files = map[string][]byte{gpu.ComponentsFile: []byte(components)}
}

func servingPair(c *config, _ *component.Facts) {
	file := c.KubeletConfig.KubeletConfigFileConfig
	file.TlsCertFile, file.TlsPrivateKeyFile = "/etc/kubernetes/certs/other.crt", "/etc/kubernetes/certs/other.key"
}

// besideSwap is a kubelet that starts beside swap.
func besideSwap(c *config) {
	c.KubeletConfig = &aksnodeconfigv1.KubeletConfig{
		EnableKubeletConfigFile: true,
		KubeletConfigFileConfig: &aksnodeconfigv1.KubeletConfigFileConfig{FailSwapOn: proto.Bool(false)},
	}
}

func softEviction(c *config, _ *component.Facts) {
	file := c.KubeletConfig.KubeletConfigFileConfig
	file.EvictionSoft, file.EvictionSoftGracePeriod = map[string]string{"memory.available": "300Mi"}, map[string]string{"memory.available": "60s"}
}

// clientCertificate is another pair than that of the full sample, without a token.
func clientCertificate(c *config, _ *component.Facts) {
	c.BootstrappingConfig = nil
	key, cert := pair()
	c.KubeletConfig = &aksnodeconfigv1.KubeletConfig{KubeletClientKey: key, KubeletClientCertContent: cert}
}

var pair = sync.OnceValues(func() (key, cert string) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, k.Public(), k)
	if err != nil {
		panic(err)
	}
	text, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		panic(err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("EC PRIVATE KEY", text), encode("CERTIFICATE", der)
})

func providerFlags(c *config, _ *component.Facts) {
	c.KubeletConfig = &aksnodeconfigv1.KubeletConfig{KubeletFlags: map[string]string{
		"--image-credential-provider-config":  "/var/lib/kubelet/credential-provider-config.yaml",
		"--image-credential-provider-bin-dir": "/var/lib/kubelet/credential-provider",
	}}
}

func localNames(c *config, _ *component.Facts) {
	c.LocalDnsProfile = &aksnodeconfigv1.LocalDnsProfile{EnableLocalDns: true, KubeDnsOverrides: oneZone()}
	c.LocalDnsProfile.KubeDnsOverrides[aZone].ForwardDestination = "ClusterCoreDNS"
}

const aZone = "corp.example"

func oneZone() map[string]*aksnodeconfigv1.LocalDnsOverrides {
	return map[string]*aksnodeconfigv1.LocalDnsOverrides{aZone: {
		ServeStale: "Immediate", ServeStaleDurationInSeconds: proto.Int32(10), CacheDurationInSeconds: proto.Int32(20),
		HealthCheck: &aksnodeconfigv1.LocalDnsHealthCheck{Duration: proto.String("2s")},
	}}
}

func firstBackoff(c *config, _ *component.Facts) {
	c.ClusterConfig.CloudProviderConfig = &aksnodeconfigv1.CloudProviderConfig{BackoffMode: "v1"}
}

func attestation(c *config, _ *component.Facts) {
	c.BootstrappingConfig = &aksnodeconfigv1.BootstrappingConfig{
		BootstrappingAuthMethod: aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_SECURE_TLS_BOOTSTRAPPING,
	}
}

func hostsPlugin(c *config, _ *component.Facts) {
	c.LocalDnsProfile.EnableHostsPlugin = true
	c.LocalDnsProfile.CriticalFqdns = []string{"one.example"}
}

// documentFor is the smallest configuration in which a field counts.
func documentFor(t *testing.T, p string) (*config, component.Facts) {
	t.Helper()
	cfg, facts := proto.CloneOf(smallest(t)), machine
	var on []string
	for prefix := range settings {
		if strings.HasPrefix(p, prefix) {
			on = append(on, prefix)
		}
	}
	slices.Sort(on)
	for _, prefix := range on {
		settings[prefix](cfg, &facts)
	}
	return cfg, facts
}

var smallestOnce struct {
	sync.Once
	cfg *config
}

func smallest(t *testing.T) *config {
	t.Helper()
	smallestOnce.Do(func() { smallestOnce.cfg = sample(t, "minimal.json") })
	return smallestOnce.cfg
}

// together are fields that are sent in pairs: one alone is refused.
var together = map[string]string{
	"kubelet_config.kubelet_client_key":          "kubelet_config.kubelet_client_cert_content",
	"kubelet_config.kubelet_client_cert_content": "kubelet_config.kubelet_client_key",
}
