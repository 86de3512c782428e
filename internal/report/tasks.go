package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// ownTasks is what names of tasks begin with that the published scripts have none for.
const ownTasks = "AKSNodeController."

// Task is what events call a part of the work on a machine.
type Task struct {
	Name string
	// Of are the beginnings of the ids of the resources that the part is about, with * for
	// anything. Where an id begins as several do, the longest counts.
	Of []string
}

// CloudCA begins the ids of the steps on the way to a cloud's certificate authorities: the
// published name of the task follows, which tasksOfCloudCA begins.
const (
	CloudCA        = "cloud-ca:"
	tasksOfCloudCA = "CSE.rcv1p."
)

// ofFailure are the published tasks of which a failure is another one.
var ofFailure = map[string]string{tasksOfCloudCA + "installCertsToTrustStore": tasksOfCloudCA + "installCertsFailed"}

// Tasks are the published ones, with what here is about the same, in their order of
// names.
var Tasks = []Task{
	{"CSE.apiserverCurl", []string{"check:apiserver"}},
	{"CSE.configPrivateClusterHosts", []string{
		"block:/etc/hosts#api-server", "unit:berth-private-hosts.timer", "file:/etc/systemd/system/berth-private-hosts."}},
	{"CSE.configureAdminUser", []string{"unit:berth-admin-user.service", "file:/etc/systemd/system/berth-admin-user.service"}},
	{"CSE.configureAndEnableSecureTLSBootstrapping", []string{
		"unit:secure-tls-bootstrap.service", "file:/etc/systemd/system/secure-tls-bootstrap.service", "file:/etc/default/secure-tls-bootstrap"}},
	{"CSE.configureAzureJson", []string{"file:/etc/kubernetes/azure.json", "file:/etc/kubernetes/akscustom.json"}},
	{"CSE.configureCNI", []string{
		"podnetwork:", "file:/etc/cni/", "directory:/etc/cni/", "file:/etc/modules-load.d/", "file:/etc/containerd/kubenet_template.conf",
		"module:br_netfilter", "module:nf_conntrack"}},
	{"CSE.configureCustomCaCertificate", []string{"trust:"}},
	{"CSE.configureK8s", []string{
		"file:/etc/kubernetes/certs/", "directory:/etc/kubernetes/kubelet.conf.d", "file:/etc/kubernetes/kubelet.conf.d/",
		"file:/etc/default/kubeletconfig.json", "file:/etc/systemd/system/kubelet.service.d/10-componentconfig.conf"}},
	{"CSE.configureKubeletAndKubectl", []string{
		"artifact:kubernetes", "artifact:kubelet", "artifact:kubectl", "link:/opt/bin/kubelet", "link:/opt/bin/kubectl"}},
	{"CSE.configureKubeletServing", []string{"serving:"}},
	{"CSE.configureLocalDNSExporterSocket", []string{"unit:localdns-exporter.socket", "file:/etc/systemd/system/localdns-exporter.socket.d/"}},
	{"CSE.configureManagedGPUExperience", []string{
		"artifact:gpu-services", "file:/opt/azure/containers/managed-gpu-experience.enabled", "file:/etc/systemd/system/nvidia-device-plugin.service.d/",
		"file:/etc/systemd/system/dra-driver-nvidia-gpu.service.d/", "file:/etc/systemd/system/nvidia-dcgm"}},
	{"CSE.configureNodeExporter", []string{"unit:node-exporter"}},
	{"CSE.configureSecondaryNICs", []string{"unit:systemd-networkd.service", "file:/etc/systemd/network/"}},
	{"CSE.configureSwapFile", []string{
		"swap:", "unit:swapfile.swap", "file:/etc/systemd/system/swapfile.swap", "file:/etc/systemd/system/berth-swap.service", "file:/etc/berth/swap.json"}},
	{"CSE.configureTransparentHugePage", []string{"sysfs:/sys/kernel/mm/transparent_hugepage/", "file:/etc/tmpfiles.d/berth-transparent-hugepage.conf"}},
	{"CSE.disableSSHPubkeyAuth", []string{"sshd:", "file:/etc/ssh/sshd_config.d/"}},
	{"CSE.disableSystemdResolved", []string{"link:/etc/resolv.conf", "unit:systemd-resolved.service"}},
	{"CSE.enableAKSLocalDNSHostsSetup", []string{"unit:aks-localdns-hosts-setup", "file:/etc/systemd/system/aks-localdns-hosts-setup"}},
	{"CSE.enableLocalDNS", []string{
		"artifact:localdns", "unit:localdns.service", "file:/etc/systemd/system/localdns.", "file:/opt/azure/containers/localdns/"}},
	{"CSE.ensureContainerd", []string{
		"unit:containerd.service", "file:/etc/systemd/system/containerd.service", "file:/etc/containerd/", "directory:/etc/containerd/",
		"module:overlay", "file:/etc/sysctl.d/99-force-bridge-forward.conf"}},
	{"CSE.ensureContainerd.configureContainerdRegistryHost", []string{"file:/etc/containerd/certs.d/"}},
	{"CSE.ensureContainerd.ensureArtifactStreaming", []string{
		"unit:acr-mirror.service", "unit:overlaybd-", "file:/etc/systemd/system/acr-mirror.service", "file:/etc/systemd/system/overlaybd-",
		"unit:berth-artifact-streaming.service", "file:/etc/systemd/system/berth-artifact-streaming.service"}},
	{"CSE.ensureDHCPv6", []string{"module:ip6_tables", "unit:dhcpv6.service"}},
	{"CSE.ensureGPUDrivers", []string{
		"check:gpu", "unit:berth-gpu.service", "file:/etc/systemd/system/berth-gpu.service", "file:/etc/berth/gpu.json",
		"file:/etc/systemd/system/nvidia-cdi-refresh.service.d/", "file:/etc/systemd/system/kubelet.service.d/10-gpu.conf", "image:*/aks-gpu-"}},
	{"CSE.ensureKubeCACert", []string{"file:/etc/kubernetes/certs/ca.crt"}},
	{"CSE.ensureKubelet", []string{
		"unit:kubelet.service", "file:/etc/systemd/system/kubelet.service",
		"file:/etc/default/kubelet", "file:/var/lib/kubelet/", "directory:/var/lib/kubelet", "directory:/etc/kubernetes/"}},
	{"CSE.ensureKubelet.configCredentialProvider", []string{"artifact:acr-credential-provider", "file:/var/lib/kubelet/credential-provider"}},
	{"CSE.ensureKubelet.ensureKubeletCgroupHierarchy", []string{
		"file:/etc/systemd/system/kubereserved.slice", "file:/etc/systemd/system/kubelet.service.d/10-slice.conf"}},
	{"CSE.ensureKubelet.ensurePodInfraContainerImage", []string{"image:*/pause:"}},
	{"CSE.ensureSysctl", []string{"sysctl:", "file:/etc/sysctl.d/"}},
	{"CSE.installAzureCNI.downloadAzureCNI", []string{"artifact:azure-cni"}},
	{"CSE.installContainerRuntime", []string{"artifact:containerd", "artifact:runc"}},
	{"CSE.installNetworkPlugin", []string{"artifact:cni-plugins", "directory:/opt/cni/bin"}},
	{"CSE.installSecureTLSBootstrapClient", []string{"artifact:secure-tls-bootstrap-client"}},
	{tasksOfCloudCA + "installCertsToTrustStore", []string{"trust:aks-cloud-ca-"}},
	{"CSE.setContainerdUlimits", []string{"file:/etc/systemd/system/containerd.service.d/set_ulimits.conf"}},
	{"CSE.start.nvidia-device-plugin", []string{"unit:nvidia-device-plugin.service"}},
	{"CSE.ubuntuSnapshotUpdate", []string{"unit:snapshot-update.timer"}},
	{"Runtime.waitForTLSBootstrapping", []string{"credential:"}},
}

// kindTasks are what events call work on a resource that no published task is about,
// by its kind; names and enablement are the engine's own, of many resources at once.
var kindTasks = map[string]string{
	"artifact": "Artifact", "block": "Block", "check": "Check", "credential": "Credential", "directory": "Directory", "file": "File",
	"image": "Image", "link": "Link", "module": "Module", "mount": "Mount", "nftables": "PacketFilter", "node": "Node", "podnetwork": "PodNetwork",
	"serving": "ServingCertificate", "sshd": "SSHD", "swap": "Swap", "sysctl": "Sysctl", "sysfs": "Sysfs", "trust": "Trust", "unit": "Unit",
	"names": "Names", "enablement": "Enablement",
}

// TaskOf is the name of the task that a resource belongs to, as in events; "" for a
// kind that nobody knows.
func TaskOf(id desired.ID) string {
	name, longest := "", ""
	for _, t := range Tasks {
		for _, prefix := range t.Of {
			if begins(string(id), prefix) && len(prefix) > len(longest) {
				name, longest = t.Name, prefix
			}
		}
	}
	kind, _, _ := strings.Cut(string(id), ":")
	if own := kindTasks[kind]; name == "" && own != "" {
		name = ownTasks + own
	}
	return name
}

func begins(id, pattern string) bool {
	head, rest, _ := strings.Cut(pattern, "*")
	return strings.HasPrefix(id, head) && strings.Contains(id[len(head):], rest)
}

// taskOf is TaskOf, also of a step of the run itself, which goes by its verb.
func taskOf(s converge.Span) string {
	if name, is := strings.CutPrefix(string(s.ID), CloudCA); is {
		return tasksOfCloudCA + name
	}
	if name := TaskOf(s.ID); name != "" {
		if failure := ofFailure[name]; failure != "" && s.Error != "" {
			return failure
		}
		return name
	}
	verb := string(s.Verb)
	return ownTasks + strings.ToUpper(verb[:1]) + verb[1:]
}

// Did is the event of an action that ended.
func Did(s converge.Span) Event {
	if s.Error != "" {
		return newEvent(taskOf(s), "Failed: "+label(s)+": "+s.Error, true, s.Start, s.End)
	}
	text := "Completed: " + label(s)
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return newEvent(taskOf(s), text, false, s.Start, s.End)
}

// DidAll are the events of a run's actions: those that failed first, then the longest
// ones, and no more than the guest agent takes. What never ended is none of them.
func DidAll(spans []converge.Span) []Event {
	ended := slices.DeleteFunc(slices.Clone(spans), func(s converge.Span) bool { return s.End.Before(s.Start) })
	slices.SortStableFunc(ended, func(a, b converge.Span) int {
		if (a.Error == "") != (b.Error == "") {
			return strings.Compare(b.Error, a.Error) // the one without comes last
		}
		return cmp.Compare(b.End.Sub(b.Start), a.End.Sub(a.Start))
	})
	var out []Event
	for _, s := range ended[:min(len(ended), maxActions)] {
		out = append(out, Did(s))
	}
	return out
}
