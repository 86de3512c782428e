package doctor

// all are the checks, in the order in which one explains the next: the machine, what is
// on it, its network, the cluster, and in the end the node itself.
func all() []Check {
	const both = Preflight | Node
	return []Check{
		{"document", "what the document asks for on this machine", "error: a file that it names is missing or of no use, the cluster's CA can't be found out", Preflight, checkDocument},
		{"root", "who runs berth", "warning: not root; what only root may see is unknown", both, checkRoot},
		{"os", "distribution, architecture, systemd", "error: systemd is not the service manager, or the architecture is neither amd64 nor arm64", both, checkOS},
		{"kernel", "the kernel's version", "error: older than 4.19, or without openat2(2), which came with 5.6; warning: older than 5.8", both, checkKernel},
		{"cgroups", "version and controllers of control groups", "error: controllers are missing, or version 1 where kubelet refuses it; warning: version 1", both, checkCgroups},
		{"modules", "overlay, br_netfilter, nf_conntrack: loaded, built in or there to be loaded", "error: neither", both, checkModules},
		{"swap", "swap areas in use, and whether kubelet takes them", "error: kubelet would refuse to start", both, checkSwap},
		{"disk", "room below /var/lib/kubelet, /var/lib/containerd and /usr/local", "error: less than 2 GiB, or than kubelet evicts pods at; warning: less than 8 GiB, or few inodes", both, checkDisk},
		{"memory", "the machine's memory", "error: less than 512 MiB, or less available than kubelet evicts pods at; warning: less than 1 GiB", both, checkMemory},
		{"hostname", "the name that the Node will have", "error: the API server would refuse it, or it is localhost", both, checkHostname},
		{"ports", "kubelet's ports", "error: another program listens", Preflight, checkPorts},
		{"runtimes", "other container runtimes", "warning: one runs", Preflight, checkRuntimes},
		{"earlier-node", "an earlier installation of Kubernetes", "error: the machine is a node of another cluster, or of another program", Preflight, checkEarlier},
		{"plan", "what would be done, without doing it", "error: something of it can't be done", Preflight, checkPlan},
		{"firewall", "chains that drop what is not accepted, firewall services", "warning: one may keep the API server from kubelet's port", both, checkFirewall},
		{"dns", "names of the API server and of the hosts of downloads, name servers for pods", "error: the API server's name has no address; warning: another name, or pods would ask a name server that they can't reach", both, checkDNS},
		{"routes", "the way out", "error: no route to the API server", both, checkRoutes},
		{"addresses", "networks of pods and services beside those of the machine", "error: a network that the machine is in overlaps; warning: a route leads there", Preflight, checkAddresses},
		{"proxy", "the document's proxies, those of the environment", "error: nobody listens; warning: the environment has one and the document has none", Preflight, checkProxy},
		{"api-server", "the API server: name, connection, TLS, an answer", "error: no answer, or one that it is not well; warning: slower than a second", both, checkServer},
		{"api-trust", "its certificate by the cluster's CA", "error: of another CA, of another name, not valid at this time", both, checkTrust},
		{"clock", "the machine's clock by that of the API server", "error: 5 minutes and more apart; warning: 5 seconds and more", both, checkClock},
		{"credential", "bootstrap token, client certificate or token of an Azure identity, as the cluster knows it", "error: the cluster does not know it, or it is not to be had", Preflight, checkCredential},
		{"credential-expiry", "how long that is good for", "error: it is over; warning: less than an hour", Preflight, checkExpiry},
		{"approval", "whether the cluster takes and approves the certificate request (SelfSubjectAccessReview)", "error: it may not be made; warning: somebody has to approve it", Preflight, checkApproval},
		{"artifacts", "each download that the machine needs: reachable, size, digest", "error: no source has it; warning: one of several has not, or nobody gives a digest", Preflight, checkArtifacts},
		{"arc", "the agent of Azure Arc", "error: the document needs it and it is not connected; warning: it is there and not connected", Preflight, checkArc},
		{"azure-operator", "each permission in Azure of who registers the machine: docs/azure-permissions.md", "error: one is missing; warning: one that leaving needs is missing", Preflight, checkOperator},
		{"azure-machine", "the permissions in Azure of the machine's identity", "error: one is missing", Preflight, checkMachineRole},
		{"containerd", "the container runtime's unit and its answer", "error: it does not run or is not ready", Node, checkContainerd},
		{"cni", "the network of pods, as the container runtime has it", "error: there is no configuration, or it does not work", Node, checkCNI},
		{"kubelet", "kubelet's unit and health endpoint", "error: it does not run or is not healthy", Node, checkKubelet},
		{"certificate", "kubelet's client certificate, or the token of an Azure identity that it shows instead", "error: missing or over, or the token is not to be had; warning: a tenth of its life is left", Node, checkCertificate},
		{"drained", "whether berth has cordoned the Node for another kubelet", "error: what came then broke and was not taken back; warning: the run that did so has not ended", Node, checkDrained},
		{"node", "the Node in the cluster", "error: it is not registered by this boot, or not Ready", Node, checkNode},
	}
}
