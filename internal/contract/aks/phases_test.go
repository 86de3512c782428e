package aks

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
)

// aPhase is something that the published chain does: its steps, in their order, or tasks by the names of their events.
type aPhase struct {
	// name is a step (base 1 to 27, node 1 to 15, or a script), or names of tasks with blanks between.
	name, does string
	// in is the package of berth that does it, "" for none; note says how, or why not.
	in, note string
}

var steps = []aPhase{
	{"init-aks-cloud", "certificates of the cloud from the WireServer, its package sources and its clock", "component/cloudca", "where `custom_cloud_env_name` is akscustom, before anything is fetched; the address of its packages is in `repo_depot_endpoint` ([upgrades](../internal/component/upgrades)); of dnf's sources and the clock's the document has no field: they are the image's"},
	{"provision_cis.sh", "hardening by the CIS benchmark", "", "it is for whoever builds the image: nothing of it is the node's"},
	{"apt_get_purge", "packages that an image has too many", "", "it is for whoever builds the image: berth removes no package"},
	{"start", "the time limit, the log, provision.json, the sentinel", "provision", "budget `cse_timeout`; provision.json whole or absent"},
	{"base 1", "addresses of critical names for the node's own name server", "component/localdns", ""},
	{"base 2", "hold of the guest agent's package", "", "the published chain skips it, too: nothing here updates packages"},
	{"base 3", "no password of the administrator or root ever expires", "component/adminuser", "by a unit, at each boot, of whom `linux_admin_username` names, and root's; without a name azureuser's and root's, where they are there and would expire. What was before comes back when the unit stops"},
	{"base 4", "the proxy in the environment of provisioning", "converge/kind/artifact", "each download has its way out in the desired state"},
	{"base 5", "which host has packages", "", "sources are those that the document names; a digest decides, not the host"},
	{"base 6", "the machine's instance metadata", "provision", "asked once with a deadline of a second, kept for the next run"},
	{"base 7", "the client of secure TLS bootstrapping", "component/securebootstrap", "where it is not asked for the image's client stays, and nobody runs it"},
	{"base 8", "no SSH, or none with keys", "component/ssh", ""},
	{"base 9", "the proxy and its CA for the machine", "component/proxy", ""},
	{"base 10", "CAs of the customer", "component/trust", ""},
	{"base 11", "the architecture, and no index of manual pages", "", "berth installs no package: there is no index to hold back"},
	{"base 12", "login to the registry of a cluster without a way out", "azure", "as the node's identity, for each download"},
	{"base 13", "resolv.conf without the local stub", "component/resolver", ""},
	{"base 14", "whether the image is whole, and a clean-up of images", "converge", "what is there is looked at; images are kubelet's to collect"},
	{"base 15", "plugins of the pod network", "component/cni", "Azure's own plugins out of `vnet_cni_plugins_url`, or the image's"},
	{"base 16", "kubelet and kubectl", "component/binaries", ""},
	{"base 17", "static pods' directory, and the search domain", "component/kubelet", "[searchdomain](../internal/component/searchdomain) enters the realm, unless the machine's keytab has keys of it, and says so"},
	{"base 18", "modules of the pod network and its configuration", "component/cni", ""},
	{"base 19", "a second address family, limits of containerd", "component/ulimits", "the module, and the image's dhcpv6.service, if it has one ([imageunits](../internal/component/imageunits)); else addresses come from its network configuration, which says, too, whether DHCP's domain is searched"},
	{"base 20", "containerd: configuration, mirrors", "component/containerd", ""},
	{"base 21", "the message of the day, private API server's address, huge pages, swap, cgroups", "component/motd", "huge pages, swap and the [address](../internal/component/hostsagent) have components of their own; no image gets a second name in China: containerd's mirror answers for the old registry"},
	{"base 22", "kubelet's drop-ins, and its data on the temporary disk", "component/kubelet", "[tempdisk](../internal/component/tempdisk) waits for the disk, and fills one that comes back empty"},
	{"base 23", "kernel parameters", "component/kernel", "each one live and for the next boot; nothing reads all files anew"},
	{"base 24", "modules that may not be loaded", "component/kernel", "by the kernel's version, as published; the image's own rules stay, and what is loaded until the next boot"},
	{"base 25", "artifact streaming", "component/streaming", "the image's services, containerd's snapshotter, and at each boot the image's own program for its mirror, whose files stay"},
	{"base 26", "the node's own name server", "component/localdns", ""},
	{"base 27", "the index of manual pages again", "", "it was never held back"},
	{"node 1", "azure.json and the custom cloud's endpoints", "component/azurejson", ""},
	{"node 2", "the cluster's CA", "component/kubelet", ""},
	{"node 3", "metadata, modules, swap and huge pages once more", "converge", "every run compares all of them"},
	{"node 4", "kubelet's serving certificate", "converge/kind/serving", "with Go's crypto, or the cluster's by rotation"},
	{"node 5", "kubelet's certificates and configuration file", "component/kubelet", ""},
	{"node 6", "the service of secure TLS bootstrapping", "component/securebootstrap", ""},
	{"node 7", "a command that proves a way out", "provision", "20 tries as published, of 15 seconds each, within `cse_timeout`; before anything changes"},
	{"node 8", "further network interfaces", "component/nics", "by systemd-networkd, each known by its hardware address, for which a busy metadata service has five seconds; before what netplan has for it; rules of udev are the image's, and nothing waits for them"},
	{"node 9", "drivers of GPUs and what goes with them", "component/gpu", "the driver and the switch between GPUs; drivers of other distributions than Ubuntu are the image's"},
	{"node 10", "the API server's name, port and certificate", "component/apicheck", "budgets as published, within `cse_timeout`"},
	{"node 11", "containerd has not failed, and the label of the name server's figures", "converge/kind/unit", "a job's own result from systemd; `kubernetes.azure.com/localdns-exporter=enabled` where the image has the exporter ([imageunits](../internal/component/imageunits)) and the node a name server"},
	{"node 12", "kubelet: address, watchdog, flags, first credential, credential provider, WireServer", "component/kubelet", ""},
	{"node 13", "exporters, and the bridge's double packets", "component/imageunits", "the image's own units, where it has them; no packet is doubled, since the bridge is in hairpin mode and not promiscuous"},
	{"node 14", "kubelet has not failed, log collector, snapshots of packages", "component/imageunits", "the timers, where the image has them; only snapshots end a run, with code 202; a job of kubelet has its own result from systemd"},
	{"node 15", "a reboot for partitions of GPUs, unattended upgrades", "component/upgrades", "[gpu](../internal/component/gpu): once, a minute after a run that ended well; apply and agent leave it to their person"},
	{"kubelet.service", "what runs before each start of kubelet", "component/kubelet", "the packet filter and the policy of iptables' chain FORWARD by `berth node firewall`; a credential is checked before kubelet is started"},
}

var tasks = []aPhase{
	{"CSE.cse_start", "the run", "provision", "and events `Provision`, `ProvisionWait`; those of each action are named below"},
	{"CSE.CloudInitStatusCheck", "cloud-init's state", "", "the configuration's own start waits for cloud-init's network stage only, as published"},
	{"CSE.apiserverCurl CSE.apiserverNC CSE.apiserverNslookup", "the API server answers", "component/apicheck", ""},
	{"CSE.configureAdminUser", "no password expires", "component/adminuser", "only of who would not be let in one day; what was before comes back"},
	{"CSE.configureKubeletAndKubectl CSE.configureKubeletAndKubectl.installKubeletKubectlFromBootstrapProfileRegistry CSE.configureKubeletAndKubectl.installKubeletKubectlFromPkg CSE.configureKubeletAndKubectl.installKubeletKubectlFromURL CSE.configureKubeletAndKubectl.installKubeletKubectlFromURL-Fallback CSE.installKubeletKubectlFromURL.extractKubeBinaries", "kubelet and kubectl", "component/binaries", ""},
	{"CSE.configureK8s CSE.ensureKubelet CSE.ensureKubelet.ensureKubeletCgroupHierarchy CSE.ensureKubelet.getPrimaryNicIP CSE.ensureKubelet.kubeletActiveFlags CSE.ensureKubelet.setKubeletNodeIPFlag CSE.ensureKubeCACert", "kubelet", "component/kubelet", ""},
	{"CSE.ensureKubelet.configCredentialProvider CSE.ensureKubelet.installCredentialProviderFromBootstrapProfileRegistry CSE.ensureKubelet.installCredentialProviderFromPkg CSE.ensureKubelet.installCredentialProviderFromUrl CSE.installCredentialProviderFromUrl.downloadCredentialProvider", "the credential provider", "component/credentialprovider", ""},
	{"CSE.ensureKubelet.ensurePodInfraContainerImage", "the sandbox image", "converge/kind/image", ""},
	{"CSE.configureKubeletServing", "the serving certificate", "converge/kind/serving", ""},
	{"CSE.configureAndEnableSecureTLSBootstrapping CSE.installSecureTLSBootstrapClient", "secure TLS bootstrapping", "component/securebootstrap", ""},
	{"CSE.configureAzureJson", "azure.json", "component/azurejson", ""},
	{"CSE.configureCNI CSE.installNetworkPlugin", "the pod network", "component/cni", ""},
	{"CSE.installAzureCNI.downloadAzureCNI CSE.ensureAzureNetworkConfig", "Azure's plugin and its rules", "component/cni", "the plugins of `vnet_cni_plugins_url` and their configuration; rules of the kernel are the image's own"},
	{"CSE.configureCustomCaCertificate", "CAs", "component/trust", ""},
	{"CSE.disableSSHPubkeyAuth", "SSH", "component/ssh", ""},
	{"CSE.disableSystemdResolved", "the resolver", "component/resolver", ""},
	{"CSE.configureSystemdUseDomains", "the domain of DHCP is searched, on Azure Linux", "", "the image's network configuration says so or not: berth starts no network service anew for it"},
	{"CSE.enableLocalDNS CSE.enableLocalDNS.disableAKSLocalDNSHostsSetup CSE.enableAKSLocalDNSHostsSetup CSE.configureLocalDNSExporterSocket", "the node's own name server", "component/localdns", "its figures are at port 9253, and at 9353 of the node's address where the image has the exporter's [socket](../internal/component/imageunits)"},
	{"CSE.ensureContainerd CSE.ensureContainerd.configureContainerdLegacyMooncakeMcrHost CSE.ensureContainerd.configureContainerdRegistryHost CSE.setContainerdUlimits", "containerd's configuration", "component/containerd", ""},
	{"CSE.installContainerRuntime CSE.installContainerRuntime.downloadContainerdFromURL CSE.installContainerRuntime.downloadContainerdFromVersion CSE.installContainerRuntime.installDebPackageFromFile CSE.installContainerRuntime.installStandaloneContainerd CSE.installContainerRuntime.removeContainerd", "containerd's programs", "component/binaries", "out of an archive or a package, none is installed or removed"},
	{"CSE.ensureContainerd.ensureArtifactStreaming", "artifact streaming", "component/streaming", ""},
	{"CSE.ensureSysctl", "kernel parameters", "component/kernel", ""},
	{"CSE.applyTransparentHugePageValues CSE.configureTransparentHugePage CSE.reconcileTransparentHugePagePersistence", "huge pages", "component/hugepages", "tmpfiles.d sets them at boot"},
	{"CSE.configureSwapFile CSE.reconcileSwapFilePersistence", "swap", "component/swap", "a swap unit, and a unit that makes the file again where the disk lost it"},
	{"CSE.configureSecondaryNICs CSE.ensureDHCPv6 CSE.ensureNoDupOnPromiscuBridge", "interfaces and the bridge", "component/nics", "DHCPv6 by the image's [service](../internal/component/imageunits), before kubelet starts; the bridge reflects what a pod sends to itself and doubles nothing"},
	{"CSE.configPrivateClusterHosts", "a private API server's address", "component/hostsagent", "by a timer, and in place before kubelet starts"},
	{"CSE.orasLogin.oras_login_with_kubelet_identity", "login to a registry", "azure", ""},
	{"CSE.fetch_and_cache_imds_instance_metadata", "instance metadata", "provision", ""},
	{"CSE.cleanUpContainerImages", "images of other versions", "", "kubelet collects images that nobody uses"},
	{"CSE.holdWALinuxAgent CSE.removeManDbAutoUpdateFlagFile CSE.installDeps CSE.setPackagesBaseURL CSE.setCPUArch CSE.logDownloadURL", "packages", "", "berth installs no package of the distribution"},
	{"CSE.install${packageName}.dnf_install CSE.install${packageName}.extractBinaryFromRPM CSE.install${packageName}.extractDebBinaryFromFile CSE.install${packageName}.installDebPackageFromFile CSE.install${packageName}FromPkg.downloadPkgFromVersion", "programs out of packages", "artifact", "out of the image's packages, or of one that the document names"},
	{"CSE.customCloudRepoInit.aptgetUpdateFailed CSE.customCloudRepoInit.checkUrlFailed CSE.customCloudRepoInit.dnfMakecacheFailed", "package sources of a custom cloud", "component/upgrades", "apt's of Ubuntu, beside the image's own; nothing is fetched"},
	{"CSE.rcv1p.certCount CSE.rcv1p.certEndpointMode CSE.rcv1p.installCertsFailed CSE.rcv1p.installCertsToTrustStore CSE.rcv1p.isOptedIn CSE.rcv1p.notOptedIn CSE.rcv1p.optInCheckFailed CSE.rcv1p.optedIn CSE.rcv1p.retrieveCerts CSE.rcv1p.retrieveCertsFailed CSE.rcv1p.retrieveLegacyCerts", "certificates of the WireServer", "component/cloudca", "asked by the run, and daily by `berth node cloud-ca`; a WireServer that does not answer ends the run with code 161, unless the machine has certificates of it; each step has its event, with what came of it, and of certificates that are not taken it is `installCertsFailed`"},
	{"CSE.configGPUDrivers.configureNvidiaCDIRefresh CSE.configGPUDrivers.installGPUDriverImage CSE.configGPUDrivers.pullGPUDriverImage CSE.configGPUDrivers.waitForNvidiaModprobe CSE.configGPUDrivers.waitForNvidiaSmi CSE.ensureGPUDrivers CSE.ensureGPUDrivers.configGPUDrivers CSE.ensureGPUDrivers.nvidia-modprobe CSE.ensureGPUDrivers.validateGPUDrivers CSE.nvidia-fabricmanager", "drivers of GPUs", "component/gpu", "by `berth node gpu`, at each boot; a driver of the right version that runs is not installed again, and the image of the driver stays; where none is to be installed it is only looked at"},
	{"CSE.configGPUDrivers.downloadGPUDrivers CSE.configGPUDrivers.installGPUDriverSysext CSE.configGPUDrivers.installNvidiaContainerToolkit CSE.configGPUDrivers.installNvidiaContainerToolkitSysext CSE.installNvidiaFabricManager CSE.installNvidiaFabricManagerSysext", "drivers of GPUs out of packages", "", "berth installs no package of the distribution: what the image holds is used, and without it the run ends with code 84"},
	{"CSE.cleanUpGPUDrivers CSE.ensureGPUDrivers.cleanUpGridNodeCudaPrebake", "drivers that an image was built with, and the machine does not need", "", "berth removes no driver; one that stands in the way of another is told of with code 84"},
	{"CSE.ensureMigPartition", "partitions of GPUs", "component/gpu", "by `berth node gpu`, at each boot; `mig_profile_layout` counts, and alone, too"},
	{"CSE.configureManagedGPUExperience CSE.installNvidiaManagedExpPkgFromCache CSE.startNvidiaManagedExpServices CSE.start.dra-driver-nvidia-gpu CSE.start.nvidia-dcgm CSE.start.nvidia-dcgm-exporter CSE.start.nvidia-device-plugin CSE.stop.dra-driver-nvidia-gpu CSE.stop.nvidia-dcgm CSE.stop.nvidia-dcgm-exporter CSE.stop.nvidia-device-plugin", "services of GPUs", "component/gpu", "the image's own units with the published drop-ins; berth installs no package of the distribution: without them the run ends with code 235"},
	{"CSE.setupAmdAma", "AMD's media accelerators", "", "not in this version: hardware and packages of the cloud's own"},
	{"CSE.configureNodeExporter", "node-exporter", "component/imageunits", "where the image has it; a start that fails is a remark of the run, as published"},
	{"CSE.ubuntuSnapshotUpdate", "snapshots of packages", "component/imageunits", "where the image has the timer"},
	{"Runtime.memory_telemetry_cgroupv1 Runtime.memory_telemetry_cgroupv2 Runtime.pressure_telemetry_cgroupv2", "telemetry of cgroups", "", "timers of the image; berth is not part of them"},
	{"Runtime.validateKubeletCredentials Runtime.waitForTLSBootstrapping Runtime.waitForTLSBootstrappingTimeout", "the first credential", "identity", "berth obtains the certificate before kubelet starts, and says why where it can't; the request has two fifteenths of `cse_timeout`, 2 minutes at most, and 10 seconds, the time of one answer, at least"},
}

// tags are those of the virtual machine that the published chain reads.
var tags = []aPhase{
	{"aks-disable-kubelet-serving-certificate-rotation", "kubelet's serving certificate is its own", "component/kubelet", "for the next run, too, where the service does not answer"},
	{"ShouldEnforceKubePMCInstall", "kubelet and kubectl out of packages", "component/binaries", "the image's own packages, before the cloud's archive; an archive of the customer goes before them, and without a package of kubelet the tag counts for nothing"},
	{"SkipGpuDriverInstall", "no drivers of GPUs", "component/gpu", "pods get runc then; for the next run, too, where the service does not answer"},
	{"EnableManagedGPUExperience", "services of GPUs", "component/gpu", "as `gpu_config.enable_managed_gpu`; for the next run, too, where the service does not answer"},
	{"aksAPIServerIPAddress", "a private API server's address", "component/hostsagent", "with `enable_hosts_config_agent`: the tag's whole name, and its value is the address; looked at every 15 seconds"},
	{"SkipBinaryCleanup", "an image that is not whole is completed", "", "what is there is looked at in each run, and what lacks is fetched"},
	{"E2EMockAzureChinaCloud", "a test's machine acts as one in China", "", "cluster_config.location says where a machine is"},
}

// TestTags: each tag has a row on the page.
func TestTags(t *testing.T) {
	checkPhases(t, tags)
	mustCover(t, tags, []string{"SkipGpuDriverInstall", "aks-disable-kubelet-serving-certificate-rotation", "SkipBinaryCleanup", "ShouldEnforceKubePMCInstall",
		"E2EMockAzureChinaCloud", "EnableManagedGPUExperience", "aksAPIServerIPAddress"})
	golden.Region(t, "../../../docs/aks-phases.md", "tags", phaseTable(tags))
}

// TestPhases: each step and each task of the published chain has a row on the page, with what does it or why nothing does.
func TestPhases(t *testing.T) {
	checkPhases(t, steps)
	checkPhases(t, tasks)
	want := []string{"init-aks-cloud", "provision_cis.sh", "apt_get_purge", "start", "kubelet.service"}
	for i := range 27 {
		want = append(want, fmt.Sprintf("base %d", i+1))
	}
	for i := range 15 {
		want = append(want, fmt.Sprintf("node %d", i+1))
	}
	published, err := os.ReadFile(filepath.Join("testdata", "tasks.txt"))
	if err != nil {
		t.Fatal(err)
	}
	mustCover(t, steps, want)
	mustCover(t, tasks, strings.Fields(string(published)))
	const page = "../../../docs/aks-phases.md"
	golden.Region(t, page, "steps", phaseTable(steps))
	golden.Region(t, page, "tasks", phaseTable(tasks))
}

func checkPhases(t *testing.T, all []aPhase) {
	t.Helper()
	for _, p := range all {
		if p.in == "" && p.note == "" {
			t.Errorf("%s: neither a part of berth nor a reason", p.name)
		}
		if entries, err := os.ReadDir(path.Join("../..", p.in)); err != nil || len(entries) == 0 {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

// mustCover: every name has one row, and no row has a name that is not published.
func mustCover(t *testing.T, all []aPhase, names []string) {
	t.Helper()
	rows := map[string]int{}
	for _, p := range all {
		for _, name := range namesOf(p) {
			rows[name]++
			if !slices.Contains(names, name) {
				t.Errorf("%s is no step or task that is published", name)
			}
		}
	}
	for _, name := range names {
		if rows[name] != 1 {
			t.Errorf("%s has %d rows", name, rows[name])
		}
	}
}

func namesOf(p aPhase) []string {
	if strings.HasPrefix(p.name, "CSE.") || strings.HasPrefix(p.name, "Runtime.") {
		return strings.Fields(p.name)
	}
	return []string{p.name}
}

func phaseTable(all []aPhase) string {
	var b strings.Builder
	b.WriteString("| published | what it is for | in berth | how, or why not |\n|---|---|---|---|\n")
	for _, p := range all {
		in := p.in
		if in != "" {
			in = "[" + path.Base(in) + "](../internal/" + in + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", "`"+strings.Join(namesOf(p), "` `")+"`", p.does, in, p.note)
	}
	return b.String()
}
