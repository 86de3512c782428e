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

// notYet is what this version does not act on: a field that asks for it is reported as not handled.
const notYet = "not in this version: the field that asks for it is reported as not handled"

var steps = []aPhase{
	{"init-aks-cloud", "certificates of the cloud from the WireServer, its package sources and its clock", "", "not in this version: an image for such a cloud brings the script, which its own boot runs"},
	{"provision_cis.sh", "hardening by the CIS benchmark", "", "it is for whoever builds the image: nothing of it is the node's"},
	{"apt_get_purge", "packages that an image has too many", "", "it is for whoever builds the image: berth removes no package"},
	{"start", "the time limit, the log, provision.json, the sentinel", "provision", "budget `cse_timeout`; provision.json whole or absent"},
	{"base 1", "addresses of critical names for the node's own name server", "component/localdns", ""},
	{"base 2", "hold of the guest agent's package", "", "the published chain skips it, too: nothing here updates packages"},
	{"base 3", "no password of the administrator or root ever expires", "component/adminuser", "by a unit, at each boot"},
	{"base 4", "the proxy in the environment of provisioning", "converge/kind/artifact", "each download has its way out in the desired state"},
	{"base 5", "which host has packages", "", "sources are those that the document names; a digest decides, not the host"},
	{"base 6", "the machine's instance metadata", "provision", "asked once with a deadline of 400 ms, kept for the next run"},
	{"base 7", "the client of secure TLS bootstrapping", "component/securebootstrap", ""},
	{"base 8", "no SSH, or none with keys", "component/ssh", ""},
	{"base 9", "the proxy and its CA for the machine", "component/proxy", ""},
	{"base 10", "CAs of the customer", "component/trust", ""},
	{"base 11", "the architecture, and no index of manual pages", "", "berth installs no package: there is no index to hold back"},
	{"base 12", "login to the registry of a cluster without a way out", "azure", "as the node's identity, for each download"},
	{"base 13", "resolv.conf without the local stub", "component/resolver", ""},
	{"base 14", "whether the image is whole, and a clean-up of images", "converge", "what is there is looked at; images are kubelet's to collect"},
	{"base 15", "plugins of the pod network", "component/cni", "Azure's own plugins out of `vnet_cni_plugins_url`, or the image's"},
	{"base 16", "kubelet and kubectl", "component/binaries", ""},
	{"base 17", "static pods' directory, and the search domain", "component/kubelet", "[searchdomain](../internal/component/searchdomain) enters the realm; a machine with a keytab is in one"},
	{"base 18", "modules of the pod network and its configuration", "component/cni", ""},
	{"base 19", "a second address family, limits of containerd", "component/ulimits", "the module; addresses come from the image's network configuration"},
	{"base 20", "containerd: configuration, mirrors, forwarding", "component/containerd", ""},
	{"base 21", "the message of the day, private API server's address, huge pages, swap, cgroups", "component/motd", "huge pages and swap have components of their own; hosts agent: " + notYet},
	{"base 22", "kubelet's drop-ins", "component/kubelet", ""},
	{"base 23", "kernel parameters", "component/kernel", "each one live and for the next boot; nothing reads all files anew"},
	{"base 24", "modules that may not be loaded", "", "not in this version; the image's own rules stay"},
	{"base 25", "artifact streaming", "component/streaming", "the image's services and containerd's snapshotter; the image's acr-config is not run"},
	{"base 26", "the node's own name server", "component/localdns", ""},
	{"base 27", "the index of manual pages again", "", "it was never held back"},
	{"node 1", "azure.json and the custom cloud's endpoints", "component/azurejson", ""},
	{"node 2", "the cluster's CA", "component/kubelet", ""},
	{"node 3", "metadata, modules, swap and huge pages once more", "converge", "every run compares all of them"},
	{"node 4", "kubelet's serving certificate", "converge/kind/serving", "with Go's crypto, or the cluster's by rotation"},
	{"node 5", "kubelet's certificates and configuration file", "component/kubelet", ""},
	{"node 6", "the service of secure TLS bootstrapping", "component/securebootstrap", ""},
	{"node 7", "a command that proves a way out", "provision", "20 tries as published, of 15 seconds each, within `cse_timeout`; before anything changes"},
	{"node 8", "further network interfaces", "component/nics", "eth1 and on, by systemd-networkd"},
	{"node 9", "drivers of GPUs and what goes with them", "", notYet},
	{"node 10", "the API server's name, port and certificate", "component/apicheck", "budgets as published, within `cse_timeout`"},
	{"node 11", "containerd has not failed", "converge/kind/unit", "a job's own result from systemd"},
	{"node 12", "kubelet: address, watchdog, flags, first credential, credential provider, WireServer", "component/kubelet", ""},
	{"node 13", "exporters, and the bridge's double packets", "", "exporters are the image's own services; no packet is doubled, since the bridge is in hairpin mode and not promiscuous"},
	{"node 14", "kubelet has not failed, log collector, snapshots of packages", "converge/kind/unit", "timers are the image's, which enables them"},
	{"node 15", "a reboot for partitions of GPUs, unattended upgrades", "component/upgrades", "partitions of GPUs: " + notYet},
	{"kubelet.service", "what runs before each start of kubelet", "component/kubelet", "the packet filter by `berth node packet-filter`; a credential is checked before kubelet is started"},
}

var tasks = []aPhase{
	{"CSE.cse_start", "the run", "provision", "events `Provision`, `ProvisionWait`"},
	{"CSE.CloudInitStatusCheck", "cloud-init's state", "", "the configuration's own start waits for cloud-init's network stage only, as published"},
	{"CSE.apiserverCurl CSE.apiserverNC CSE.apiserverNslookup", "the API server answers", "component/apicheck", ""},
	{"CSE.configureAdminUser", "no password expires", "component/adminuser", ""},
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
	{"CSE.disableSystemdResolved CSE.configureSystemdUseDomains", "the resolver", "component/resolver", ""},
	{"CSE.enableLocalDNS CSE.enableLocalDNS.disableAKSLocalDNSHostsSetup CSE.enableAKSLocalDNSHostsSetup CSE.configureLocalDNSExporterSocket", "the node's own name server", "component/localdns", "its figures are at port 9253; there is no second exporter"},
	{"CSE.ensureContainerd CSE.ensureContainerd.configureContainerdLegacyMooncakeMcrHost CSE.ensureContainerd.configureContainerdRegistryHost CSE.setContainerdUlimits", "containerd's configuration", "component/containerd", ""},
	{"CSE.installContainerRuntime CSE.installContainerRuntime.downloadContainerdFromURL CSE.installContainerRuntime.downloadContainerdFromVersion CSE.installContainerRuntime.installDebPackageFromFile CSE.installContainerRuntime.installStandaloneContainerd CSE.installContainerRuntime.removeContainerd", "containerd's programs", "component/binaries", "out of an archive or a package, none is installed or removed"},
	{"CSE.ensureContainerd.ensureArtifactStreaming", "artifact streaming", "component/streaming", ""},
	{"CSE.ensureSysctl", "kernel parameters", "component/kernel", ""},
	{"CSE.applyTransparentHugePageValues CSE.configureTransparentHugePage CSE.reconcileTransparentHugePagePersistence", "huge pages", "component/hugepages", "tmpfiles.d sets them at boot"},
	{"CSE.configureSwapFile CSE.reconcileSwapFilePersistence", "swap", "component/swap", "a swap unit, and a unit that makes the file again where the disk lost it"},
	{"CSE.configureSecondaryNICs CSE.ensureDHCPv6 CSE.ensureNoDupOnPromiscuBridge", "interfaces and the bridge", "component/nics", "DHCPv6 is the image's; the bridge reflects what a pod sends to itself and doubles nothing"},
	{"CSE.configPrivateClusterHosts", "a private API server's address", "", notYet},
	{"CSE.orasLogin.oras_login_with_kubelet_identity", "login to a registry", "azure", ""},
	{"CSE.fetch_and_cache_imds_instance_metadata", "instance metadata", "provision", ""},
	{"CSE.cleanUpContainerImages", "images of other versions", "", "kubelet collects images that nobody uses"},
	{"CSE.holdWALinuxAgent CSE.removeManDbAutoUpdateFlagFile CSE.installDeps CSE.setPackagesBaseURL CSE.setCPUArch CSE.logDownloadURL", "packages", "", "berth installs no package of the distribution"},
	{"CSE.install${packageName}.dnf_install CSE.install${packageName}.extractBinaryFromRPM CSE.install${packageName}.extractDebBinaryFromFile CSE.install${packageName}.installDebPackageFromFile CSE.install${packageName}FromPkg.downloadPkgFromVersion", "programs out of packages", "artifact", "out of the image's packages, or of one that the document names"},
	{"CSE.customCloudRepoInit.aptgetUpdateFailed CSE.customCloudRepoInit.checkUrlFailed CSE.customCloudRepoInit.dnfMakecacheFailed", "package sources of a custom cloud", "component/upgrades", "apt's of Ubuntu, beside the image's own; nothing is fetched"},
	{"CSE.rcv1p.certCount CSE.rcv1p.certEndpointMode CSE.rcv1p.installCertsFailed CSE.rcv1p.installCertsToTrustStore CSE.rcv1p.isOptedIn CSE.rcv1p.notOptedIn CSE.rcv1p.optInCheckFailed CSE.rcv1p.optedIn CSE.rcv1p.retrieveCerts CSE.rcv1p.retrieveCertsFailed CSE.rcv1p.retrieveLegacyCerts", "certificates of the WireServer", "", "not in this version; no field asks for it"},
	{"CSE.cleanUpGPUDrivers CSE.configGPUDrivers.configureNvidiaCDIRefresh CSE.configGPUDrivers.downloadGPUDrivers CSE.configGPUDrivers.installGPUDriverImage CSE.configGPUDrivers.installGPUDriverSysext CSE.configGPUDrivers.installNvidiaContainerToolkit CSE.configGPUDrivers.installNvidiaContainerToolkitSysext CSE.configGPUDrivers.pullGPUDriverImage CSE.configGPUDrivers.waitForNvidiaModprobe CSE.configGPUDrivers.waitForNvidiaSmi CSE.ensureGPUDrivers CSE.ensureGPUDrivers.cleanUpGridNodeCudaPrebake CSE.ensureGPUDrivers.configGPUDrivers CSE.ensureGPUDrivers.nvidia-modprobe CSE.ensureGPUDrivers.validateGPUDrivers CSE.ensureMigPartition CSE.installNvidiaFabricManager CSE.installNvidiaFabricManagerSysext CSE.nvidia-fabricmanager", "drivers of GPUs", "", notYet},
	{"CSE.configureManagedGPUExperience CSE.installNvidiaManagedExpPkgFromCache CSE.startNvidiaManagedExpServices CSE.start.dra-driver-nvidia-gpu CSE.start.nvidia-dcgm CSE.start.nvidia-dcgm-exporter CSE.start.nvidia-device-plugin CSE.stop.dra-driver-nvidia-gpu CSE.stop.nvidia-dcgm CSE.stop.nvidia-dcgm-exporter CSE.stop.nvidia-device-plugin", "services of GPUs", "", notYet},
	{"CSE.setupAmdAma", "AMD's media accelerators", "", "not in this version: hardware and packages of the cloud's own"},
	{"CSE.configureNodeExporter", "node-exporter", "", "the image's own service, which the image enables"},
	{"CSE.ubuntuSnapshotUpdate", "snapshots of packages", "", "the image's own timer, which the image enables"},
	{"Runtime.memory_telemetry_cgroupv1 Runtime.memory_telemetry_cgroupv2 Runtime.pressure_telemetry_cgroupv2", "telemetry of cgroups", "", "timers of the image; berth is not part of them"},
	{"Runtime.validateKubeletCredentials Runtime.waitForTLSBootstrapping Runtime.waitForTLSBootstrappingTimeout", "the first credential", "identity", "berth obtains the certificate before kubelet starts, and says why where it can't"},
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
