package aks

import (
	"slices"
	"strings"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/gates"
	"github.com/berth-dev/berth/internal/component/hostsagent"
	"github.com/berth-dev/berth/internal/component/imageunits"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/proxy"
	"github.com/berth-dev/berth/internal/component/ssh"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/desired"
)

// accountRules has an entry for every field of the contract, or for a message that
// goes as a whole. A test holds it to the state: a field that counts as inState
// changes the state with its value, any other does not.
var accountRules = map[string]rule{
	"version":            always(disposition{kind: elsewhere}),
	"kubernetes_version": toState,
	"pre_provision_only": toState,
	"kubernetes_ca_cert": ofMember(toState),
	"custom_ca_certs":    toState,
	"cse_timeout":        when((*translation).joins, toState, always(disposition{kind: elsewhere})),

	"api_server_config": ofMember(toState),
	"auth_config":       ofMember(toState),

	"cluster_config":          ofMember(toState),
	"cluster_config.location": when(mirrored, ofMember(toState), toState),
	"cluster_config.cluster_network_config.core_dns_service_ip": ofMember(when(asksCluster, toState, useless("only a DNS cache on the node that forwards to the cluster needs it"))),
	"cluster_config.cloud_provider_config.backoff_exponent":     ofMember(when(backoffV1, toState, useless(paced))),
	"cluster_config.cloud_provider_config.backoff_jitter":       ofMember(when(backoffV1, toState, useless(paced))),
	"bootstrapping_config":                                                    ofMember(when(hasToken, useless(tokenFirst), when(attested, toState, useless(otherMethod)))),
	"bootstrapping_config.tls_bootstrapping_token":                            ofMember(toState),
	"bootstrapping_config.cluster_join_method":                                useless(unread),
	"bootstrapping_config.bootstrapping_auth_method":                          ofMember(when(hasToken, useless("the token's presence decides"), toState)),
	"bootstrapping_config.secure_tls_bootstrapping_aad_resource":              ofMember(when(hasToken, useless(tokenFirst), when(byIdentity, toState, useless(otherMethod)))),
	"bootstrapping_config.secure_tls_bootstrapping_user_assigned_identity_id": ofMember(when(hasToken, useless(tokenFirst), when(choosesIdentity, toState, useless(otherMethod)))),
	"kube_binary_config.kube_binary_url":                                      when((*translation).byTag, useless("a tag of the virtual machine has kubelet come from the image's package"), when((*translation).versioned, useless("the image holds kubelet of that version"), when(urlIs((*aksnodeconfigv1.KubeBinaryConfig).GetKubeBinaryUrl), when(kubeIsolated, inPart(ofVersion), toState), useless("another archive of kubelet goes before it")))),
	"kube_binary_config.private_kube_binary_url":                              when(urlIs((*aksnodeconfigv1.KubeBinaryConfig).GetPrivateKubeBinaryUrl), toState, useless("another archive of kubelet goes before it")),
	"kube_binary_config.custom_kube_binary_url":                               toState,
	"kube_binary_config.pod_infra_container_image_url":                        toState,
	"kube_binary_config.linux_credential_provider_url":                        ofMember(when(provided, when(providerIsolated, inPart(ofVersion), toState), useless(noProvider))),
	"custom_cloud_config.custom_cloud_env_name":                               ofMember(when(inCustomCloud, toState, useless("only the name akscustom means something"))),
	"custom_cloud_config.custom_env_json_content":                             ofMember(when(inCustomCloud, toState, useless("custom_cloud_env_name is not akscustom"))),
	"custom_cloud_config.container_registry_dns_suffix":                       ofMember(when(namesRegistries, toState, useless(noProvider))),
	"custom_cloud_config.repo_depot_endpoint":                                 when(inCustomCloud, when(mirrorsPackages, toState, useless("the image is no Ubuntu, or it is no address for apt")), useless("custom_cloud_env_name is not akscustom")),
	"containerd_config.containerd_package_url":                                toState,
	"containerd_config.containerd_version":                                    when(unpacks, toState, useless("the containerd of the image decides")),
	"containerd_config.containerd_download_url_base":                          when(fromBase, toState, useless("it takes an address with its scheme, containerd_version, and no containerd_package_url")),
	"runc_config.runc_package_url":                                            toState,
	"runc_config.runc_version":                                                when(fetchesRunc, toState, useless("the runc of the image decides")),
	"kubelet_config.kubelet_flags":                                            toState,
	"kubelet_config.kubelet_node_labels":                                      ofMember(toState),
	"kubelet_config.kubelet_disk_type":                                        ofMember(toState),
	"kubelet_config.enable_kubelet_config_file":                               ofMember(when(anotherFile, useless(otherFile), toState)),
	"kubelet_config.kubelet_client_key":                                       ofMember(when(hasToken, useless(tokenFirst), when(byIdentity, useless(identityFirst), toState))),
	"kubelet_config.kubelet_client_cert_content":                              ofMember(when(hasToken, useless(tokenFirst), when(byIdentity, useless(identityFirst), toState))),
	"kubelet_config.container_data_dir":                                       toState,
	"kubelet_config.kubelet_config_file_config":                               ofMember(fileField(toState)),
	kubeletFile + "kind":                                                      ofMember(fileField(always(disposition{kind: elsewhere}))),
	kubeletFile + "api_version":                                               ofMember(fileField(always(disposition{kind: elsewhere}))),
	kubeletFile + "server_tls_bootstrap":                                      ofMember(when(rotationOff, useless(byTag), toState)),
	kubeletFile + "tls_cert_file":                                             ofMember(fileField(when(clusterServes, useless(noOwn), toState))),
	kubeletFile + "tls_private_key_file":                                      ofMember(fileField(when(clusterServes, useless(noOwn), toState))),
	kubeletFile + "streaming_connection_idle_timeout":                         ofMember(fileField(when(streams, toState, useless("kubelet 1.34 dropped it")))),
	"custom_search_domain_config":                                             ofMember(when(joinsDomain, when(inRealm, inPart(memberAlready), toState), useless(halfDomain))),
	"custom_search_domain_config.domain_name":                                 ofMember(when(joinsDomain, domainOf, useless(halfDomain))),
	"custom_linux_os_config.sysctl_config":                                    toState,
	"custom_linux_os_config.ulimit_config":                                    toState,
	"custom_linux_os_config.enable_swap_config":                               when(swaps, toState, useless(halfSwap)),
	"custom_linux_os_config.swap_file_size":                                   when(swaps, toState, useless(halfSwap)),
	"custom_linux_os_config.transparent_hugepage_support":                     toState,
	"custom_linux_os_config.transparent_defrag":                               toState,
	"http_proxy_config":                                                       toState,
	"http_proxy_config.http_proxy":                                            whereProxied((*aksnodeconfigv1.HttpProxyConfig).GetHttpProxy),
	"http_proxy_config.https_proxy":                                           whereProxied((*aksnodeconfigv1.HttpProxyConfig).GetHttpsProxy),
	"http_proxy_config.no_proxy_entries":                                      when(anyProxy, when((*translation).joins, toState, inPart(ofDownloads)), useless("there is no proxy")),
	"gpu_config.gpu_instance_profile":                                         ofGPU(when(laidOut, useless("mig_profile_layout says which partitions"), toState)),
	"gpu_config.mig_profile_layout":                                           ofGPU(toState),
	"gpu_config.mig_strategy":                                                 ofGPU(when(plugged, toState, useless("it takes partitions, and the device plugin"))),
	"gpu_config.enable_nvidia":                                                when(skipsGPU, when((*translation).joins, toState, useless(skipTag)), toState),
	"gpu_config.enable_managed_gpu":                                           ofGPU(when(tagManages, useless("a tag of the virtual machine says it"), toState)),
	"gpu_config.enable_managed_gpu_dra":                                       ofGPU(toState),
	"gpu_config.config_gpu_driver":                                            ofGPU(when(installsDrivers, toState, useless("drivers are packages of the distribution, which the image brings"))),
	"gpu_config.gpu_device_plugin":                                            useless(unread),
	"gpu_config.enable_amd_gpu":                                               useless(unread),
	"gpu_config.managed_gpu_experience_afec_enabled":                          useless(unread),
	"network_config.network_plugin":                                           when((*translation).kubenet, toState, when(installsAzure, toState, when(awaitsAzurePlugin, inPart("the configuration of Azure's plug-in is not moved to "+cni.ConfDir), always(disposition{kind: elsewhere})))),
	"network_config.network_policy":                                           when((*translation).kubenet, toState, ofMember(toState)),
	"network_config.vnet_cni_plugins_url":                                     when(azurePlugin, toState, useless("the network plugin is not Azure's")),
	"network_config.cni_plugins_url":                                          toState,
	"network_config.standard_secondary_nic_count":                             ofMember(when(moreInterfaces, toState, useless("it asks for no interface"))),
	"kube_proxy_url":                                                          ofMember(when(pullsKubeProxy, toState, useless("it is no image"))),
	"vm_size":                                                                 ofGPU(toState),
	"linux_admin_username":                                                    when(namesAdmin, toState, useless("it is no name of a user")),
	"is_vhd":                                                                  useless("what the image holds is looked at, not assumed"),
	"enable_ssh":                                                              when(sshIs, toState, useless(noSSH)),
	"disable_pubkey_auth":                                                     when(sshStays, when(keysAre, toState, useless(noSSH)), useless("the SSH server is switched off")),
	"enable_unattended_upgrade":                                               when(upgradesItself, toState, useless("the image has neither apt nor dnf-automatic")),
	"message_of_the_day":                                                      when(greets, toState, useless("it is no base64")),
	"enable_hosts_config_agent":                                               ofMember(when(privateLink, when(knowsServer, toState, inPart(noServerTag)), useless("the name of the API server is no private link's"))),
	"provision_output":                                                        when(linksLog, toState, when(isFileName, always(disposition{kind: elsewhere}), useless("it is no path of a file"))),
	"workload_runtime":                                                        useless(unread),
	"ipv6_dual_stack_enabled":                                                 when(hasIPv6, when(asksForIPv6, toState, inPart("the image has no "+imageunits.DHCPv6+": addresses come from its network configuration")), useless("the kernel has no IPv6")),
	"outbound_command":                                                        ofMember(when(mirrored, useless("a cluster without a way out has none to prove"), when(proves, toState, useless("it has no word")))),
	"azure_private_registry_server":                                           ofMember(when(provided, toState, useless(noProvider))),
	"private_egress_proxy_address":                                            when(privateEgress, when((*translation).joins, when(privateProxy, inPart(notForAll), toState), inPart(ofDownloads)), useless("http_proxy_config names the proxy")),
	"enable_artifact_streaming":                                               when(setsUpStreaming, toState, inPart(noSetup)),
	"is_kata":                                                                 toState,
	"needs_cgroupv2":                                                          when(driverFlag, useless("kubelet_flags names the cgroup driver"), toState),
	"disable_custom_data":                                                     useless(unread),
	"bootstrap_profile_container_registry_server":                             toState,
	"imds_restriction_config":                                                 ofMember(when(restrictsIMDS, toState, useless("it is not enabled"))),
	"local_dns_profile":                                                       ofMember(when(localDNS, toState, useless("enable_local_dns is off"))),
	"local_dns_profile.enable_local_dns":                                      ofMember(toState),
	"local_dns_profile.critical_fqdns":                                        ofMember(when(localHosts, toState, useless(noHosts))),
	"local_dns_profile.hosts_plugin_refresh_interval_in_seconds":              ofMember(when(localHosts, toState, useless(noHosts))),
	"service_account_image_pull_profile":                                      ofMember(when(boundPulls, when(provided, when((*translation).podIdentities, toState, useless("kubelet gives credential providers no tokens of pods before "+gates.Find(gates.PodTokens).Since)), useless(noProvider)), useless("it is not enabled"))),
	"enabled_features":                                                        when((*translation).hasFeatures, toState, useless(unread)),
}

const (
	kubeletFile   = "kubelet_config.kubelet_config_file_config."
	ofDownloads   = "of an image berth's own downloads use it; no program of it does"
	notForAll     = "an address with a user or a password is not put into " + proxy.Environment + ", which everybody reads"
	ofVersion     = "of it the version counts: the program comes from bootstrap_profile_container_registry_server"
	paced         = "backoff mode v2 has no such setting"
	otherMethod   = "the bootstrapping method is another one"
	identityFirst = "the machine joins as an identity, which goes first"
	tokenFirst    = "there is a bootstrap token, which goes first"
	noServerTag   = "no tag " + hostsagent.Tag + " of the virtual machine names an address yet, and the name servers are asked"
	halfDomain    = "it takes a domain, a user and a password"
	memberAlready = "the machine's keytab says that it is in the domain already: nobody enters it again"
	halfSwap      = "swap takes both the switch and a size"
	byTag         = "a tag of the virtual machine takes the serving certificate out of the cluster's hands"
	noHosts       = "enable_local_dns and enable_hosts_plugin are not both on"
	noSetup       = "the image has neither of the programs that have containerd ask registries through its mirror"
	noSSH         = "the image has no SSH server"
	noProvider    = "kubelet_flags names no credential provider"
	noOwn         = "the cluster issues the serving certificate"
	otherFile     = "kubelet_flags names another configuration file with --config"
)

// fileField is a field of kubelet's configuration file.
func fileField(r rule) rule {
	return when(anotherFile, useless(otherFile), when(configFile, r, useless("enable_kubelet_config_file is off")))
}

func proxied(t *translation) bool {
	p := t.cfg.GetHttpProxyConfig()
	return p.GetHttpProxy() != "" || p.GetHttpsProxy() != ""
}

func anyProxy(t *translation) bool { return proxied(t) || privateEgress(t) }

// whereProxied is the address of a proxy: not all of it is for everybody's eyes.
func whereProxied(get func(*aksnodeconfigv1.HttpProxyConfig) string) rule {
	private := func(t *translation) bool { return proxy.Private(desired.Secret(get(t.cfg.GetHttpProxyConfig()))) }
	return when((*translation).joins, when(private, inPart(notForAll), toState), inPart(ofDownloads))
}

func kubeIsolated(t *translation) bool { return t.isolated(decode.KubeURL(t.cfg)) }

func providerIsolated(t *translation) bool {
	return t.isolated(t.cfg.GetKubeBinaryConfig().GetLinuxCredentialProviderUrl())
}

func mirrored(t *translation) bool { return t.cfg.GetBootstrapProfileContainerRegistryServer() != "" }

// privateLink: the published agent leaves other names alone.
func privateLink(t *translation) bool {
	return hostsagent.Applies(t.cfg.GetApiServerConfig().GetApiServerName())
}

func localHosts(t *translation) bool {
	return localDNS(t) && t.cfg.GetLocalDnsProfile().GetEnableHostsPlugin()
}

func localDNS(t *translation) bool { return t.cfg.GetLocalDnsProfile().GetEnableLocalDns() }

func backoffV1(t *translation) bool {
	return t.cfg.GetClusterConfig().GetCloudProviderConfig().GetBackoffMode() == "v1"
}

func hasToken(t *translation) bool {
	return t.cfg.GetBootstrappingConfig().GetTlsBootstrappingToken() != ""
}

func authMethod(t *translation) aksnodeconfigv1.BootstrappingAuthMethod {
	return t.cfg.GetBootstrappingConfig().GetBootstrappingAuthMethod()
}

func attested(t *translation) bool {
	return authMethod(t) == aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_SECURE_TLS_BOOTSTRAPPING
}

func byIdentity(t *translation) bool { return attested(t) || t.azureIdentity() != nil }

// choosesIdentity: a machine may have several identities, one that is registered with
// Azure Arc has one.
func choosesIdentity(t *translation) bool {
	return byIdentity(t) && authMethod(t) != aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_ARC_MSI
}

// urlIs says whether an archive of kubelet is the one that counts.
func urlIs(get func(*aksnodeconfigv1.KubeBinaryConfig) string) func(*translation) bool {
	return func(t *translation) bool { return get(t.cfg.GetKubeBinaryConfig()) == decode.KubeURL(t.cfg) }
}

func provided(t *translation) bool {
	_, _, ok := t.providerFlags()
	return ok
}

// namesRegistries: the credential provider wants to know how they end, or a
// download does.
func namesRegistries(t *translation) bool {
	return provided(t) || slices.ContainsFunc(t.state.Resources, func(r desired.Resource) bool {
		_, via := outside(r)
		return via != nil && *via != nil && (*via).Identity != nil
	})
}

// privateProxy is an address that not everybody may read.
func privateProxy(t *translation) bool {
	return proxy.Private(desired.Secret(t.cfg.GetPrivateEgressProxyAddress()))
}

func pullsKubeProxy(t *translation) bool { return t.kubeProxy() != nil }
func fromBase(t *translation) bool       { return t.baseURL() != "" }
func hasIPv6(t *translation) bool        { return t.facts.IPv6 }

func setsUpStreaming(t *translation) bool { return t.facts.StreamingSetup != "" }

func inCustomCloud(t *translation) bool { return decode.CustomCloud(t.cfg) }
func unpacks(t *translation) bool       { return t.packageURL() != "" }
func fetchesRunc(t *translation) bool   { return runcURL(t.cfg) != "" }
func configFile(t *translation) bool    { return t.cfg.GetKubeletConfig().GetEnableKubeletConfigFile() }
func gpus(t *translation) bool          { return t.cfg.GetGpuConfig().GetEnableNvidia() }
func boundPulls(t *translation) bool    { return t.cfg.GetServiceAccountImagePullProfile().GetEnabled() }
func restrictsIMDS(t *translation) bool {
	return t.cfg.GetImdsRestrictionConfig().GetEnableImdsRestriction()
}

func proves(t *translation) bool { return strings.TrimSpace(t.cfg.GetOutboundCommand()) != "" }

// sshStays: without a word the server stays.
func sshStays(t *translation) bool { return t.cfg.EnableSsh == nil || t.cfg.GetEnableSsh() }
func keysStay(t *translation) bool { return !t.cfg.GetDisablePubkeyAuth() }
func keysAre(t *translation) bool  { return t.facts.SSHServer != "" }

// sshIs: there is something to switch off, or to leave without keys.
func sshIs(t *translation) bool {
	return slices.ContainsFunc(t.facts.VendorUnits, ssh.IsUnit) || keysAre(t) && !keysStay(t)
}

func swaps(t *translation) bool {
	c := t.cfg.GetCustomLinuxOsConfig()
	return c.GetEnableSwapConfig() && c.GetSwapFileSize() > 0
}

func driverFlag(t *translation) bool {
	return t.cfg.GetKubeletConfig().GetKubeletFlags()[cgroupFlag] != ""
}

func tempDisk(t *translation) bool {
	return t.cfg.GetKubeletConfig().GetKubeletDiskType() == aksnodeconfigv1.KubeletDisk_KUBELET_DISK_TEMP_DISK
}

func azurePlugin(t *translation) bool {
	return t.cfg.GetNetworkConfig().GetNetworkPlugin() == aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_AZURE
}

// awaitsAzurePlugin: the published scripts move its configuration out of the image
// to where the runtime looks.
func awaitsAzurePlugin(t *translation) bool { return azurePlugin(t) && !t.facts.CNIConfigured }

func anotherFile(t *translation) bool {
	return kubelet.Settings{Flags: t.cfg.GetKubeletConfig().GetKubeletFlags()}.AnotherFile()
}

func rotationOff(t *translation) bool { return t.facts.RotationOff }

func clusterServes(t *translation) bool {
	s, err := t.kubeletFlagsAndConfig()
	return err == nil && s.KeepsNoServingFiles()
}

func streams(t *translation) bool {
	s, err := t.kubeletFlagsAndConfig()
	return err == nil && s.Withheld("--streaming-connection-idle-timeout") == ""
}
