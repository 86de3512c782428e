package doctor

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/host/survey"
	"github.com/berth-dev/berth/internal/identity"
)

// checkCase is a world that is changed, and what a check says of it.
type checkCase struct {
	check  string
	when   Occasion
	want   Status
	says   string
	change func(*world)
}

var checkCases = []checkCase{
	{"document", Preflight, OK, "2 resources", nil},
	{"document", Preflight, Error, "no luck", func(w *world) { w.noState(errTest) }},
	{"document", Preflight, Unknown, "permission denied", func(w *world) { w.noState(fmt.Errorf("read: %w", syscall.EACCES)) }},

	{"root", Preflight, OK, "root", nil},
	{"root", Preflight, Warning, "user 1000", func(w *world) { w.o.UID = 1000 }},

	{"os", Preflight, OK, "Debian 12", nil},
	{"os", Preflight, Unknown, "systemd", func(w *world) { w.denied = []string{"multi-user.target"} }},

	{"kernel", Preflight, OK, "6.1.0", nil},
	{"kernel", Preflight, Error, "older than 4.19", func(w *world) { w.memory.Value("/proc/sys/kernel/osrelease", "4.18.20\n") }},
	{"kernel", Preflight, Warning, "older than 5.8", func(w *world) { w.memory.Value("/proc/sys/kernel/osrelease", "5.7.0-x\n") }},
	{"kernel", Preflight, Error, "needs Linux 5.6", func(w *world) { w.denied, w.denial = []string{"/proc"}, host.ErrOldKernel }},
	{"kernel", Preflight, Unknown, "for root", func(w *world) { w.denied = []string{"/proc/sys/kernel/osrelease"} }},
	{"kernel", Preflight, Unknown, "calls itself", func(w *world) { w.memory.Value("/proc/sys/kernel/osrelease", "next\n") }},

	{"cgroups", Preflight, OK, "version 2", func(w *world) { w.cgroup2("cpuset cpu io memory pids") }},
	{"cgroups", Preflight, Error, "lack memory", func(w *world) { w.cgroup2("cpuset cpu io pids") }},
	{"cgroups", Preflight, Error, "refuses it from 1.35", func(w *world) { w.cgroup1() }},
	{"cgroups", Preflight, Warning, "version 1", func(w *world) { w.cgroup1(); w.kubeletConfig(`{"failCgroupV1": false}`) }},
	{"cgroups", Preflight, Warning, "version 1", func(w *world) { w.cgroup1(); w.o.Config.Components.Kubernetes.Version = "v1.34.1" }},
	{"cgroups", Preflight, Unknown, "not known", func(w *world) { w.cgroup1(); w.noState(errTest) }},
	{"cgroups", Node, Warning, "version 1", func(w *world) { w.cgroup1() }},
	{"cgroups", Preflight, Error, "lacks cpu", nil},
	{"cgroups", Preflight, Unknown, "not said", func(w *world) { w.cgroup2("") }},
	{"cgroups", Preflight, Unknown, "for root", func(w *world) { w.denied = []string{"/proc/self/mountinfo"} }},

	{"modules", Preflight, OK, "br_netfilter will be loaded", nil},
	{"modules", Preflight, Error, "br_netfilter is not loaded", func(w *world) { w.memory.Put("/usr/lib/modules/6.1.0-18-amd64/modules.dep", "", 0o644) }},
	{"modules", Preflight, Unknown, "for root", func(w *world) { w.denied = []string{"/usr/lib/modules"} }},

	{"swap", Preflight, OK, "none", nil},
	{"swap", Preflight, OK, "kubelet takes it", func(w *world) { w.swap(); w.kubeletConfig(`{"failSwapOn": false}`) }},
	{"swap", Preflight, Error, "/swapfile is in use", func(w *world) { w.swap() }},
	{"swap", Preflight, OK, "berth takes it out of use", func(w *world) {
		w.swap()
		w.add(&desired.Unit{Name: "swapfile.swap", Activation: desired.Stopped})
	}},
	{"swap", Node, Error, "/swapfile is in use", func(w *world) {
		w.swap()
		w.add(&desired.Unit{Name: "swapfile.swap", Activation: desired.Stopped})
	}},
	{"swap", Preflight, Unknown, "not known", func(w *world) { w.swap(); w.noState(errTest) }},
	{"swap", Node, Unknown, "not known", func(w *world) { w.swap(); w.installed(plainConfig); w.denied = []string{kubelet.ConfigFile} }},
	{"swap", Node, OK, "kubelet takes it", func(w *world) { w.swap(); w.installed(plainConfig, "--fail-swap-on=false") }},
	{"swap", Preflight, OK, "kubelet takes it", func(w *world) {
		w.swap()
		w.kubeletConfig(plainConfig)
		w.memory.Put(kubelet.ConfigDir+"/50-x.conf", dropIn(`"failSwapOn": false`), 0o600)
	}},
	{"swap", Node, Error, "/swapfile is in use", func(w *world) { w.swap() }},
	{"swap", Preflight, Unknown, "for root", func(w *world) { w.denied = []string{"/proc/swaps"} }},

	{"disk", Preflight, OK, "50.0 GiB free", nil},
	{"disk", Preflight, Error, "at least 15.0 GiB", func(w *world) { w.survey.space.Free = 12 << 30; w.kubeletConfig(plainConfig) }},
	{"disk", Preflight, Error, "at least 15.0 GiB", func(w *world) { w.survey.space.Free = 12 << 30; w.kubeletConfig(`{"evictionHard": null}`) }},
	{"disk", Preflight, OK, "12.0 GiB free", func(w *world) { w.survey.space.Free = 12 << 30; w.kubeletConfig(`{"evictionHard": {}}`) }},
	{"disk", Preflight, Error, "at least 15.0 GiB", func(w *world) {
		w.survey.space.Free = 12 << 30
		w.kubeletConfig(`{"evictionHard": {"memory.available": "50Mi"}, "mergeDefaultEvictionSettings": true}`)
	}},
	{"disk", Preflight, OK, "12.0 GiB free", func(w *world) {
		w.survey.space.Free = 12 << 30
		w.kubeletConfig(`{"evictionHard": {"memory.available": "50Mi", "nodefs.available": "100%", "imagefs.available": "0%"}}`)
	}},
	{"disk", Preflight, OK, "12.0 GiB free", func(w *world) {
		w.survey.space.Free = 12 << 30
		w.kubeletConfig(plainConfig, "--eviction-hard=memory.available<50Mi,nodefs.available<1%,imagefs.available<1%")
	}},
	{"disk", Preflight, Error, "at least 20.0 GiB", func(w *world) {
		w.survey.space.Free = 12 << 30
		w.kubeletConfig(`{"evictionHard": {"nodefs.available": "1%"}}`, "--eviction-hard", "nodefs.available<20%")
	}},
	{"disk", Preflight, Error, "at least 15.0 GiB", func(w *world) { // others' files are merged into kubelet's defaults
		w.survey.space.Free = 12 << 30
		w.kubeletConfig(plainConfig)
		w.memory.Put(kubelet.ConfigDir+"/50-x.conf", dropIn(`"evictionHard": {"nodefs.available": "1%"}`), 0o644)
	}},
	{"disk", Preflight, OK, "12.0 GiB free", func(w *world) {
		w.survey.space.Free = 12 << 30
		w.kubeletConfig(plainConfig)
		w.memory.Put(kubelet.ConfigDir+"/50-x.conf", dropIn(`"evictionHard": {"nodefs.available": "30%", "imagefs.available": "1%"}`), 0o644)
		w.memory.Put(kubelet.ConfigDir+"/60/x.conf", dropIn(`"evictionHard": {"nodefs.available": "1%"}`), 0o644)
		w.memory.Put(kubelet.ConfigDir+"/70-x.json", dropIn(`"evictionHard": {"nodefs.available": "40%"}`), 0o644)
	}},
	{"disk", Preflight, Unknown, "kubelet evicts pods at is for root", func(w *world) {
		w.kubeletConfig(plainConfig)
		w.memory.Put(kubelet.ConfigDir+"/50-x.conf", "", 0o600)
		w.denied = []string{kubelet.ConfigDir}
	}},
	{"disk", Preflight, Unknown, "kubelet evicts pods at can't be read", func(w *world) { w.noState(errTest) }},
	{"disk", Preflight, Error, "at least 2.0 GiB", func(w *world) { w.survey.space.Free = 1 << 30; w.noState(errTest) }},
	{"disk", Node, OK, "12.0 GiB free", func(w *world) {
		w.survey.space.Free = 12 << 30
		w.installed(plainConfig)
		w.memory.Put("/k/config", "kind: KubeletConfiguration\nevictionHard:\n  nodefs.available: 1%\n", 0o600)
		w.started("--config=/k/config")
	}},
	{"disk", Node, Error, "at least 20.0 GiB", func(w *world) {
		w.survey.space.Free = 12 << 30
		w.installed(plainConfig, "--eviction-hard=nodefs.available<1%")
		w.started("--config", kubelet.ConfigFile, "--eviction_hard", "nodefs.available<20%")
	}},
	{"disk", Node, Unknown, "for root", func(w *world) {
		w.installed(plainConfig)
		w.started()
		w.denied = []string{w.cmdline}
	}},
	{"disk", Node, Unknown, "for root", func(w *world) { w.installed(plainConfig); w.denied = []string{kubelet.FlagsFile} }},
	{"disk", Node, Unknown, "configuration of its own", func(w *world) {
		w.memory.Put(kubelet.UnitFile, "[Service]\nExecStart=/bin/sh -c 'exec kubelet'\n", 0o644)
		_ = w.memory.DaemonReload(w.t.Context())
	}},
	{"disk", Preflight, Warning, "4.0 GiB of 100.0 GiB", func(w *world) {
		w.survey.space.Free = 4 << 30
		w.kubeletConfig(`{"evictionHard": {"nodefs.available": "1%", "imagefs.available": "3Gi"}}`)
	}},
	{"disk", Preflight, Warning, "inodes", func(w *world) { w.survey.space.FreeFiles = 7 }},
	{"disk", Preflight, Unknown, "no luck", func(w *world) { w.survey.err = errTest }},

	{"memory", Preflight, OK, "7.6 GiB", nil},
	{"memory", Preflight, Error, "need 0.5 GiB", func(w *world) { w.memory.Value("/proc/meminfo", "MemTotal: 100000 kB\n") }},
	{"memory", Preflight, Error, "evict pods at once", func(w *world) {
		w.memory.Value("/proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 90000 kB\n")
		w.kubeletConfig(plainConfig)
	}},
	{"memory", Preflight, OK, "0.1 GiB available", func(w *world) {
		w.memory.Value("/proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 90000 kB\n")
		w.kubeletConfig(plainConfig, "--eviction-hard=memory.available<50Mi")
	}},
	{"memory", Preflight, Unknown, "kubelet evicts pods at", func(w *world) { w.noState(errTest) }},
	{"memory", Preflight, Warning, "little for pods", func(w *world) { w.memory.Value("/proc/meminfo", "MemTotal: 800000 kB\nMemAvailable: 700000 kB\n") }},
	{"memory", Preflight, Unknown, "does not say", func(w *world) { w.memory.Value("/proc/meminfo", "MemTotal: much\n") }},

	{"hostname", Preflight, OK, "node-1", nil},
	{"hostname", Preflight, OK, "edge", func(w *world) { w.o.Config.Node.Name = "edge" }},
	{"hostname", Preflight, Error, "node_1", func(w *world) { w.o.Config.Node.Name = "node_1" }},
	{"hostname", Preflight, Error, "longer than 63", func(w *world) { w.o.Config.Node.Name = strings.Repeat("a", 64) }},
	{"hostname", Node, Error, "localhost", func(w *world) { w.memory.Value("/proc/sys/kernel/hostname", "localhost\n") }},
	{"hostname", Node, OK, "node-1", func(w *world) { w.node(time.Hour); w.memory.Value("/proc/sys/kernel/hostname", "other\n") }},
	{"hostname", Node, Unknown, "does not say", func(w *world) { w.memory.Value("/proc/sys/kernel/hostname", "\n") }},

	{"ports", Preflight, OK, "10250 is free", nil},
	{"ports", Preflight, Error, "port 10250 is in use by nginx (pid 7)", func(w *world) { w.listens("0.0.0.0", 10250); w.survey.holder = "nginx (pid 7)" }},
	{"ports", Preflight, Error, "port 12345 is in use by another program", func(w *world) { w.listens("::", 12345); w.kubeletConfig(`{"port": 12345}`) }},
	{"ports", Preflight, OK, "10300 is free", func(w *world) { w.listens("::", 12345); w.kubeletConfig(`{"port": 12345}`, "--port=10300") }},
	{"ports", Preflight, Unknown, "which ports", func(w *world) { w.noState(errTest) }},
	{"ports", Preflight, OK, "10248 is free", func(w *world) { w.listens("192.0.2.10", 10248) }},
	{"ports", Preflight, OK, "kubelet's own", func(w *world) { w.listens("127.0.0.1", 10248); w.survey.holder = "kubelet (pid 7)" }},
	{"ports", Preflight, OK, "kubelet's own", func(w *world) { w.listens("127.0.0.1", 10248); w.runs(kubelet.Unit) }},
	{"ports", Preflight, Unknown, "no luck", func(w *world) { w.survey.err = errTest }},

	{"runtimes", Preflight, OK, "none", nil},
	{"runtimes", Preflight, Warning, "Docker runs", func(w *world) { w.runs("docker.service") }},
	{"runtimes", Preflight, Unknown, "for root", func(w *world) { w.denied = []string{"docker.service"} }},

	{"earlier-node", Preflight, OK, "there is none", nil},
	{"earlier-node", Preflight, OK, "of this cluster already", func(w *world) { w.node(time.Hour) }},
	{"earlier-node", Preflight, Error, "kubeadm join", func(w *world) { w.memory.Put("/etc/kubernetes/kubelet.conf", "", 0o600) }},
	{"earlier-node", Preflight, Error, "k3s", func(w *world) { w.memory.PutDir("/etc/rancher/k3s") }},
	{"earlier-node", Preflight, Error, "AKS Flex Node", func(w *world) { w.memory.Put("/etc/aks-flex-node/daemon-state.json", "{}", 0o600) }},
	{"earlier-node", Preflight, Error, "AKS Flex Node", func(w *world) { w.memory.PutDir("/etc/aks-flex-node/daemon-credentials") }},
	{"earlier-node", Preflight, OK, "there is none", func(w *world) { w.memory.Put("/etc/aks-flex-node/config.json", "{}", 0o600) }},
	{"earlier-node", Preflight, Error, "another cluster", func(w *world) { w.node(time.Hour); w.o.Config.Cluster.Server = "https://other:6443" }},
	{"earlier-node", Preflight, Error, "kubelet runs", func(w *world) { w.runs(kubelet.Unit) }},
	{"earlier-node", Preflight, Unknown, "for root", func(w *world) { w.denied = []string{kubelet.Kubeconfig} }},

	{"plan", Preflight, OK, "nothing", nil},
	{"plan", Preflight, OK, "1 actions", func(w *world) {
		w.o.Plan = func(context.Context, *desired.State) (*converge.Plan, error) {
			return &converge.Plan{Actions: make([]converge.Action, 1)}, nil
		}
	}},
	{"plan", Preflight, Error, "no luck", func(w *world) {
		w.o.Plan = func(context.Context, *desired.State) (*converge.Plan, error) { return nil, errTest }
	}},
	{"plan", Preflight, Unknown, "see the check credential", func(w *world) {
		w.o.Plan = func(context.Context, *desired.State) (*converge.Plan, error) {
			return nil, &converge.ActionError{ID: desired.ClientCertificateID("/k"), Verb: converge.VerbIssue, Err: &identity.Error{Reason: identity.ReasonNoToken, Err: errTest}}
		}
	}},
	{"plan", Preflight, Unknown, "see the check credential", func(w *world) {
		w.o.Plan = func(context.Context, *desired.State) (*converge.Plan, error) {
			return nil, &converge.ActionError{ID: desired.ClientCertificateID("/k"), Verb: converge.VerbIssue, Err: &exitcode.Error{Number: exitcode.Credential, Err: errTest}}
		}
	}},
	{"plan", Preflight, Error, "no luck", func(w *world) { // a kubeconfig that is a directory
		w.o.Plan = func(context.Context, *desired.State) (*converge.Plan, error) {
			return nil, &converge.ActionError{ID: desired.ClientCertificateID("/k"), Verb: converge.VerbIssue, Err: errTest}
		}
	}},
	{"plan", Preflight, Error, "no luck", func(w *world) { // not the token alone
		w.o.Plan = func(context.Context, *desired.State) (*converge.Plan, error) {
			return nil, errors.Join(&identity.Error{Reason: identity.ReasonNoToken, Err: syscall.ENOENT}, errTest)
		}
	}},
	{"plan", Preflight, Unknown, "for root", func(w *world) {
		w.o.Plan = func(context.Context, *desired.State) (*converge.Plan, error) { return nil, syscall.EACCES }
	}},

	{"firewall", Preflight, OK, "no chain", nil},
	{"firewall", Preflight, Warning, "filter INPUT drops", func(w *world) { w.survey.dropping = []string{"filter INPUT"} }},
	{"firewall", Preflight, Warning, "ufw.service", func(w *world) { w.runs("ufw.service") }},
	{"firewall", Preflight, Unknown, "legacy", func(w *world) { w.survey.err = survey.ErrLegacy }},
	{"firewall", Preflight, Unknown, "for root", func(w *world) { w.survey.err = syscall.EPERM }},

	{"dns", Preflight, OK, "no name", nil},
	{"dns", Preflight, OK, "localhost has an address", func(w *world) { w.o.Config.Cluster.Server = "https://localhost:6443" }},
	{"dns", Preflight, Error, "no-such-host.invalid", func(w *world) { w.o.Config.Cluster.Server = "https://no-such-host.invalid" }},
	{"dns", Preflight, Warning, "no-such-place.invalid", func(w *world) { w.artifact("https://no-such-place.invalid/x") }},
	{"dns", Preflight, OK, "no name", func(w *world) {
		w.artifact("https://no-such-place.invalid/x").Via = &desired.Egress{HTTPSProxy: "http://proxy:1"}
	}},
	{"dns", Preflight, Warning, "/run/list names 127.0.0.53", func(w *world) {
		w.memory.Put("/run/list", "nameserver 127.0.0.53\n", 0o644)
		w.kubeletConfig(plainConfig, "--resolv-conf=/run/list")
	}},
	{"dns", Preflight, Warning, "ask themselves", func(w *world) { w.memory.Put("/etc/resolv.conf", "nameserver 127.0.0.53\n", 0o644) }},
	{"dns", Preflight, OK, "no name", func(w *world) {
		w.memory.Put("/etc/resolv.conf", "nameserver 127.0.0.53\n", 0o644)
		w.memory.Put("/run/x", "nameserver 192.0.2.53\n", 0o644)
		w.kubeletConfig(`{"resolvConf": "/run/x"}`)
	}},
	{"dns", Node, Unknown, "not known", nil},

	{"routes", Preflight, OK, "on this machine", nil},
	{"routes", Preflight, OK, "by eth0", func(w *world) { w.o.Config.Cluster.Server = "https://203.0.113.1" }},
	{"routes", Preflight, Error, "no route", func(w *world) { w.o.Config.Cluster.Server = "https://203.0.113.1"; w.survey.routes = nil }},
	{"routes", Preflight, Unknown, "no luck", func(w *world) { w.survey.err = errTest }},
	{"routes", Node, Unknown, "not known", nil},

	{"addresses", Preflight, OK, "apart", func(w *world) {
		w.o.Config.Networking.PodCIDRs = []string{"10.244.1.0/24"}
		w.kubeletConfig(`{"clusterDNS": ["10.96.0.10"]}`)
	}},
	{"addresses", Preflight, Error, "pods are to have 192.0.0.0/16", func(w *world) { w.o.Config.Networking.PodCIDRs = []string{"192.0.0.0/16"} }},
	{"addresses", Preflight, Error, "services have 192.0.2.53/32", func(w *world) { w.kubeletConfig(`{"clusterDNS": ["192.0.2.53"]}`) }},
	{"addresses", Preflight, Error, "services have 192.0.2.53/32", func(w *world) { w.kubeletConfig(plainConfig, "--cluster-dns=192.0.2.53") }},
	{"addresses", Preflight, Error, "reaches 192.0.2.0/24 by eth0", func(w *world) { w.route("192.0.0.0/8"); w.kubeletConfig(`{"clusterDNS": ["192.0.2.53"]}`) }},
	{"addresses", Preflight, Warning, "reaches 10.0.0.0/8 by eth0", func(w *world) { w.route("10.0.0.0/8"); w.kubeletConfig(`{"clusterDNS": ["10.96.0.10"]}`) }},
	{"addresses", Preflight, Warning, "reaches 10.244.7.0/24 by eth0", func(w *world) {
		w.route("10.244.7.0/24")
		w.o.Config.Networking.PodCIDRs = []string{"10.244.0.0/16"}
		w.survey.addresses = w.survey.addresses[:1]
	}},
	{"addresses", Preflight, OK, "apart", func(w *world) {
		w.route("0.0.0.0/1")
		w.route("2000::/3")
		w.kubeletConfig(`{"clusterDNS": ["10.96.0.10", "2001:db8::10"]}`)
	}},
	{"addresses", Preflight, Unknown, "the cluster alone knows them", nil},
	{"addresses", Preflight, Unknown, "no luck", func(w *world) { w.survey.err = errTest }},
	{"addresses", Preflight, Unknown, "not known", func(w *world) { w.noState(errTest) }},

	{"proxy", Preflight, OK, "none", nil},
	{"proxy", Preflight, OK, "takes connections", func(w *world) {
		w.artifact("https://x/").Via = &desired.Egress{HTTPSProxy: desired.Secret(w.api.health.URL)}
	}},
	{"proxy", Preflight, Error, "does not answer", func(w *world) {
		w.artifact("https://x/").Via = &desired.Egress{HTTPProxy: "http://me:secret@127.0.0.1:1"}
	}},
	{"proxy", Preflight, Warning, "HTTPS_PROXY is set", func(w *world) {
		w.o.Env = func(n string) string { return map[string]string{"HTTPS_PROXY": "http://me:secret@x"}[n] }
	}},
	{"proxy", Preflight, Unknown, "not known", func(w *world) { w.noState(errTest) }},

	{"api-server", Preflight, OK, "answers after", nil},
	{"api-server", Node, OK, "answers after", func(w *world) { w.node(time.Hour) }},
	{"api-server", Preflight, Error, "connection refused", func(w *world) { w.o.Config.Cluster.Server = "https://127.0.0.1:1" }},
	{"api-server", Preflight, Error, "HTTP status 503", func(w *world) { w.api.status = 503 }},
	{"api-server", Preflight, Unknown, "no luck", func(w *world) { w.o.Config = nil; w.noState(errTest) }},
	{"api-server", Preflight, OK, "answers after", func(w *world) { w.o.Config = nil }},
	{"api-server", Node, Unknown, "for root", func(w *world) { w.denied = []string{kubelet.Kubeconfig} }},
	{"api-server", Node, Error, "no kubeconfig", nil},

	{"api-trust", Preflight, OK, "good until", nil},
	{"api-trust", Preflight, Error, "not by the CA", func(w *world) { w.ca(pairOf(w.t, time.Now(), time.Now().Add(time.Hour))) }},
	{"api-trust", Preflight, Error, "certificate of localhost", func(w *world) { w.o.Config.Cluster.Server = strings.Replace(w.api.URL, "127.0.0.1", "localhost", 1) }},
	{"api-trust", Preflight, Error, "no certificate", func(w *world) { w.ca("text") }},
	{"api-trust", Preflight, Unknown, "not known", func(w *world) { w.noState(errTest) }},
	{"api-trust", Preflight, Unknown, "shown no certificate", func(w *world) { w.o.Config.Cluster.Server = "https://127.0.0.1:1" }},

	{"clock", Preflight, OK, "to the second", nil},
	{"clock", Preflight, Error, "ahead of", func(w *world) { w.api.date = dated(-time.Hour) }},
	{"clock", Preflight, Warning, "behind", func(w *world) { w.api.date = dated(time.Minute) }},
	{"clock", Preflight, Unknown, "does not say", func(w *world) { w.api.date = func() string { return "" } }},
	{"clock", Preflight, Unknown, "has not said", func(w *world) { w.o.Config.Cluster.Server = "https://127.0.0.1:1" }},

	{"credential", Preflight, OK, "knows the bootstrap token abcdef", nil},
	{"credential", Preflight, OK, "knows the bootstrap token abcdef", func(w *world) {
		w.memory.Put("/token", token+"\n", 0o600)
		w.credential(desired.ClientCertificate{TokenFile: "/token"})
	}},
	{"credential", Preflight, OK, "already", func(w *world) { w.node(time.Hour); w.credential(desired.ClientCertificate{TokenFile: "/gone"}) }},
	{"credential", Preflight, Error, "does not know the bootstrap token aaaaaa", func(w *world) { w.credential(desired.ClientCertificate{Token: "aaaaaa.0123456789abcdef"}) }},
	{"credential", Preflight, Error, "no such file", func(w *world) { w.credential(desired.ClientCertificate{TokenFile: "/gone"}) }},
	{"credential", Preflight, Error, "variable NO_SUCH", func(w *world) { w.credential(desired.ClientCertificate{TokenEnv: "NO_SUCH"}) }},
	{"credential", Preflight, Error, "does not know the client certificate", func(w *world) { w.certificate(time.Hour) }},
	{"credential", Preflight, Unknown, "for root", func(w *world) {
		w.credential(desired.ClientCertificate{TokenFile: "/token"})
		w.denied = []string{"/token"}
	}},
	{"credential", Preflight, Unknown, "no luck", func(w *world) { w.noState(errTest) }},
	{"credential", Preflight, Unknown, "can't be asked", func(w *world) { w.ca(pairOf(w.t, time.Now(), time.Now().Add(time.Hour))) }},

	{"credential-expiry", Preflight, OK, "good until", func(w *world) { w.api.expiration = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339) }},
	{"credential", Preflight, OK, "the identity managedIdentity", func(w *world) { w.azure(token, nil) }},
	{"credential", Preflight, Error, "no luck", func(w *world) { w.azure("", errTest) }},
	{"credential", Preflight, Error, "does not know the token of the identity", func(w *world) { w.azure("other", nil) }},

	{"credential", Preflight, OK, "the identity arc", func(w *world) { w.direct() }},
	{"credential", Preflight, Unknown, "trust.caFiles", func(w *world) {
		w.direct()
		w.o.References.Way, w.o.References.WayCAFiles = &desired.Egress{}, []string{"/absent.pem"}
	}},
	{"approval", Preflight, OK, "no certificate is asked for", func(w *world) { w.direct() }},
	{"approval", Preflight, Error, "may not create nodes", func(w *world) { w.direct(); w.api.rights = nil }},
	{"credential-expiry", Preflight, OK, "whenever", func(w *world) { w.azure("x.y.z", nil) }},
	{"approval", Preflight, Error, "may not create", func(w *world) { w.azure(token, nil); w.api.rights = nil }},
	{"credential-expiry", Preflight, OK, "has no end", func(w *world) { w.api.expiration = "" }},
	{"credential-expiry", Preflight, OK, "good until", func(w *world) { w.certificate(48 * time.Hour) }},
	{"credential-expiry", Preflight, Error, "ended at", func(w *world) { w.certificate(-time.Minute) }},
	{"credential-expiry", Preflight, Error, "ended at", func(w *world) { w.credential(desired.ClientCertificate{Token: jwt(time.Now().Add(-time.Hour))}) }},
	{"credential-expiry", Preflight, Warning, "ends in", func(w *world) { w.api.expiration = time.Now().Add(time.Minute).UTC().Format(time.RFC3339) }},
	{"credential-expiry", Preflight, Unknown, "may not see its own end", nil},
	{"credential-expiry", Preflight, Unknown, "neither", func(w *world) { w.credential(desired.ClientCertificate{Token: "opaque"}) }},

	{"approval", Preflight, OK, "approved by the cluster", nil},
	{"approval", Preflight, OK, "none is asked for", func(w *world) { w.certificate(time.Hour) }},
	{"approval", Preflight, Error, "may not create certificatesigningrequests", func(w *world) { w.api.rights = nil }},
	{"approval", Preflight, Warning, "does not approve", func(w *world) { w.api.rights = []string{""} }},
	{"approval", Preflight, Unknown, "does not know who asks", func(w *world) { w.credential(desired.ClientCertificate{Token: "aaaaaa.0123456789abcdef"}) }},

	{"artifacts", Preflight, OK, "names none", nil},
	{"artifacts", Preflight, OK, "x is in place", func(w *world) { w.artifact("https://x/"); w.memory.Put("/x", "", 0o755) }},
	{"artifacts", Preflight, OK, "x: 5.0 MB, digest by the URL", func(w *world) {
		w.artifact("https://x/")
		w.reaches(artifact.Reached{Size: 5e6, Digest: "d", From: "the URL"})
	}},
	{"artifacts", Preflight, Warning, "nobody gives its digest", func(w *world) { w.artifact("https://x/"); w.reaches(artifact.Reached{Size: -1}) }},
	{"artifacts", Preflight, Warning, "no luck", func(w *world) {
		w.artifact("https://x/")
		w.reaches(artifact.Reached{Err: &artifact.DownloadError{Err: errTest}}, artifact.Reached{Digest: "d"})
	}},
	{"artifacts", Preflight, Error, "no luck", func(w *world) {
		w.artifact("https://x/")
		w.reaches(artifact.Reached{Err: &artifact.DownloadError{Err: errTest}})
	}},
	{"artifacts", Preflight, Error, "not in the image", func(w *world) {
		w.artifact("https://x/")
		w.o.Fetcher = &fakeFetcher{err: &artifact.AbsentError{Name: "x"}}
	}},
	{"artifacts", Preflight, Unknown, "for root", func(w *world) { w.artifact("https://x/"); w.o.Fetcher = &fakeFetcher{err: syscall.EACCES} }},
	{"artifacts", Preflight, Unknown, "not known", func(w *world) { w.noState(errTest) }},

	{"arc", Preflight, OK, "not needed", nil},
	{"arc", Preflight, OK, "connected as box", func(w *world) { w.arc(`{"status":"Connected","resourceName":"box"}`, 0) }},
	{"arc", Preflight, Warning, "Disconnected", func(w *world) { w.arc(`{"status":"Disconnected"}`, 0) }},
	{"arc", Preflight, Error, "Expired", func(w *world) { w.arc(`{"status":"Expired"}`, 0); w.o.Config.Identity.Arc = &v1alpha1.Arc{} }},
	{"arc", Preflight, OK, "is registered when it joins", func(w *world) { w.arc(`{"status":"Disconnected"}`, 0); w.registers() }},
	{"arc", Preflight, Error, "registered as box, and the agent is Disconnected", func(w *world) { w.arc(`{"status":"Disconnected","resourceName":"box"}`, 0); w.registers() }},
	{"arc", Preflight, Error, "registered as box, whose identity is Expired", func(w *world) { w.arc(`{"status":"Expired","resourceName":"box"}`, 0); w.registers() }},
	{"arc", Preflight, Warning, "registered as box", func(w *world) { w.arc(`{"status":"Disconnected","resourceName":"box"}`, 0) }},
	{"arc", Preflight, Error, "not there", func(w *world) { w.o.Config.Identity.Arc = &v1alpha1.Arc{} }},
	{"arc", Preflight, OK, "azcmagent: 5.0 MB, digest by the document", func(w *world) {
		w.installs()
		w.reaches(artifact.Reached{Size: 5e6, Digest: "d", From: "the document"})
	}},
	{"arc", Preflight, Error, "no luck", func(w *world) { w.installs(); w.reaches(artifact.Reached{Err: &artifact.DownloadError{Err: errTest}}) }},
	{"arc", Preflight, OK, "connected as box", func(w *world) { w.installs(); w.arc(`{"status":"Connected","resourceName":"box"}`, 0) }},
	{"arc", Preflight, Unknown, "does not say", func(w *world) { w.arc("", 1) }},
	{"arc", Preflight, Unknown, "can't be read", func(w *world) { w.arc("words", 0) }},

	{"azure-operator", Preflight, OK, "nobody registers", nil},
	{"azure-operator", Preflight, OK, "as Azure Connected Machine Onboarding; /subscriptions/s/resourceGroups/g: as Azure Connected Machine Resource Administrator; /c: as Role Based", func(w *world) { w.azureGrants(true, nil, "*") }},
	{"azure-operator", Preflight, OK, "a node already", func(w *world) {
		w.azureGrants(true, nil)
		w.o.Settled = func() bool { return true }
	}},
	{"azure-operator", Preflight, Error, "Microsoft.HybridCompute/machines/write is not allowed", func(w *world) { w.azureGrants(true, nil, "*/read", "Microsoft.Authorization/*", "*/delete") }},
	{"azure-operator", Preflight, Error, "/c: Microsoft.Authorization/roleAssignments/write, Microsoft.Authorization/roleAssignments/delete is not allowed", func(w *world) { w.azureGrants(true, nil, "*/read", "Microsoft.HybridCompute/*") }},
	{"azure-operator", Preflight, Warning, "Microsoft.HybridCompute/machines/delete is not allowed, to delete the machine", func(w *world) { w.azureGrants(true, nil, "*/read", "*/write", "Microsoft.Authorization/*") }},
	{"azure-operator", Preflight, Unknown, "what the identity may do in /c: no answer", func(w *world) { w.azureGrants(true, errors.New("no answer")) }},
	{"azure-machine", Preflight, OK, "not asked", nil},
	{"azure-machine", Preflight, OK, "given its role when it joins", func(w *world) { w.azureGrants(true, nil) }},
	{"azure-machine", Preflight, OK, "as Azure Kubernetes Service Cluster User Role", func(w *world) {
		w.azureGrants(false, nil, "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action")
	}},
	{"azure-machine", Preflight, Error, "listClusterUserCredential/action is not allowed", func(w *world) { w.azureGrants(false, nil, "*/read") }},
	{"azure-machine", Preflight, Unknown, "has registered the machine", func(w *world) { w.unregistered(); w.o.References.Arc.ClusterID = "" }},
	{"azure-machine", Preflight, OK, "given its role when it joins", (*world).unregistered},
	{"document", Preflight, Unknown, "as the machine: the machine's identity is there when the join has registered the machine", (*world).unregistered},
	{"document", Preflight, Unknown, "has registered the machine", func(w *world) { w.unregistered(); w.arc(`{"status":"Disconnected"}`, 0) }},
	{"document", Preflight, Error, "no answer", func(w *world) { w.unregistered(); w.arc(`{"status":"Connected","resourceName":"box"}`, 0) }},
	{"document", Preflight, Error, "no answer", func(w *world) { w.unregistered(); w.arc("", 1) }},
	{"document", Preflight, Error, "no answer", func(w *world) { w.unregistered(); w.o.Settled = func() bool { return true } }},
	{"document", Preflight, Error, "no answer", func(w *world) { w.unregistered(); w.o.References.Azure.Identity.Kind = desired.AzureManagedIdentity }},
	{"api-server", Preflight, Unknown, "has registered the machine", func(w *world) { w.unregistered(); w.o.Config.Cluster.Server = "" }},
	{"credential", Preflight, Unknown, "has registered the machine", (*world).arcWithServer},
	{"credential-expiry", Preflight, Unknown, "has registered the machine", (*world).arcWithServer},
	{"approval", Preflight, Unknown, "has registered the machine", func(w *world) { w.direct(); w.o.References.Arc = &component.ArcRegistration{} }},
	{"azure-machine", Preflight, Unknown, "no answer", func(w *world) { w.azureGrants(false, errors.New("no answer")) }},

	{"containerd", Node, OK, "runs", func(w *world) { w.runs(containerd.Unit) }},
	{"containerd", Node, Error, "not-found", nil},
	{"containerd", Node, Error, "inactive", func(w *world) { w.runs(containerd.Unit); w.stop(containerd.Unit) }},
	{"containerd", Node, Error, "no luck", func(w *world) { w.runs(containerd.Unit); w.runtime(&fakeRuntime{err: errTest}, nil) }},
	{"containerd", Node, Unknown, "for root", func(w *world) { w.runs(containerd.Unit); w.runtime(nil, syscall.EACCES) }},
	{"containerd", Node, Unknown, "for root", func(w *world) { w.denied = []string{containerd.Unit} }},

	{"cni", Node, OK, "has a network", func(w *world) { w.cni() }},
	{"cni", Node, Error, "no configuration", nil},
	{"cni", Node, Error, "no luck", func(w *world) { w.cni(); w.runtime(&fakeRuntime{network: errTest}, nil) }},
	{"cni", Node, Unknown, "does not say", func(w *world) { w.cni(); w.runtime(nil, errTest) }},
	{"cni", Node, Unknown, "for root", func(w *world) { w.denied = []string{cni.ConfDir} }},

	{"kubelet", Node, OK, "healthy", func(w *world) { w.runs(kubelet.Unit) }},
	{"kubelet", Node, Error, "inactive", func(w *world) { w.runs(kubelet.Unit); w.stop(kubelet.Unit) }},
	{"kubelet", Node, Error, "connection refused", func(w *world) { w.runs(kubelet.Unit); w.o.Healthz = "http://127.0.0.1:1/healthz" }},
	{"kubelet", Node, Unknown, "for root", func(w *world) { w.denied = []string{kubelet.Unit} }},
	{"kubelet", Node, OK, "kubelet.service runs", func(w *world) {
		w.installed(plainConfig)
		w.started("--healthz-port=0")
		w.o.Healthz = ""
	}},
	{"kubelet", Node, Error, "http://127.0.0.1:1/healthz", func(w *world) {
		w.installed(`{"healthzPort": 0}`)
		w.started("--config="+kubelet.ConfigFile, "--healthz-port=1")
		w.o.Healthz = ""
	}},
	{"kubelet", Node, Unknown, "how it is is for root", func(w *world) {
		w.installed(plainConfig)
		w.started("--config=" + kubelet.ConfigFile)
		w.o.Healthz, w.denied = "", []string{kubelet.ConfigFile}
	}},

	{"drained", Node, OK, "has not cordoned", nil},
	{"drained", Node, Warning, "cordoned node n1 at 2026-11-23T16:00:00Z", func(w *world) { w.drained(`{"node":"n1","since":"2026-11-23T16:00:00Z"}`) }},
	{"drained", Node, Error, "until a run has mended it", func(w *world) { w.drained(`{"node":"n1","broken":true}`) }},
	{"drained", Node, Unknown, "for root", func(w *world) { w.denied = []string{"/var/lib/berth"} }},

	{"certificate", Node, OK, "system:node:node-1", func(w *world) { w.node(time.Hour) }},
	{"certificate", Node, OK, "system:node:node-1", func(w *world) { w.kubeconfig = kubelet.AgentKubeconfig; w.node(time.Hour) }},
	{"certificate", Node, Error, "ended at", func(w *world) { w.node(-time.Minute) }},
	{"certificate", Node, Error, "kubelet has none", nil},
	{"certificate", Node, Warning, "has not renewed", func(w *world) { w.node(time.Minute) }},
	{"certificate", Node, OK, "but a token", func(w *world) { w.shows("") }},
	{"certificate", Node, OK, "of the identity arc", func(w *world) { w.shows(desired.AzureArc) }},
	{"certificate", Node, Error, "no luck", func(w *world) {
		w.shows(desired.AzureArc)
		w.o.Tokens = func(context.Context, *desired.AzureIdentity, *desired.Egress) (desired.Secret, error) {
			return "", errTest
		}
	}},
	{"certificate", Node, Unknown, "for root", func(w *world) { w.shows(desired.AzureArc); w.denied = []string{azureidentity.Path} }},
	{"certificate", Node, Unknown, "for root", func(w *world) { w.node(time.Hour); w.denied = []string{kubelet.Kubeconfig} }},

	{"node", Node, OK, "node-1 is Ready", func(w *world) { w.node(time.Hour); w.runs(kubelet.Unit); w.ready("True", "") }},
	{"node", Node, Error, "cni-not-ready", func(w *world) { w.node(time.Hour); w.runs(kubelet.Unit); w.ready("False", "NetworkPluginNotReady") }},
	{"node", Node, Unknown, "for root", func(w *world) { w.denied = []string{kubelet.Kubeconfig} }},
}

// plainConfig is a configuration that leaves all to kubelet.
const plainConfig = `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}`

// dropIn is a file of others for kubelet with a field.
func dropIn(field string) string {
	return `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", ` + field + `}`
}

func TestChecks(t *testing.T) {
	for _, c := range checkCases {
		t.Run(c.check+" "+string(c.want)+" "+c.says, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.change != nil {
				c.change(w)
			}
			before := fmt.Sprint(w.memory.Tree())
			r := w.check(c.check, c.when)
			if r.Status != c.want || !strings.Contains(r.Finding, c.says) {
				t.Errorf("%+v", r)
			}
			if (r.Status == Error || r.Status == Warning) && r.Remedy == "" && !strings.Contains(c.says, "luck") {
				t.Errorf("no remedy: %+v", r)
			}
			if strings.Contains(r.Remedy, exitcode.LogPath) || strings.Contains(r.Remedy, "cse_timeout") {
				t.Errorf("a remedy for provisioning: %+v", r)
			}
			if text := r.Finding + r.Remedy; strings.Contains(text, "0123456789abcdef") || strings.Contains(text, "secret") {
				t.Errorf("a secret is told: %+v", r)
			}
			if fmt.Sprint(w.memory.Tree()) != before {
				t.Error("the machine was changed")
			}
		})
	}
}

// TestEachCheckHasCases: what is well, what is not and what can't be known.
func TestEachCheckHasCases(t *testing.T) {
	have := map[string]bool{}
	for _, c := range checkCases {
		have[c.check+" "+string(c.want)] = true
	}
	for _, c := range all() {
		found := have[c.Name+" error"] || have[c.Name+" warning"]
		if !have[c.Name+" ok"] || !found && c.Name != "os" || !have[c.Name+" unknown"] && c.Name != "root" {
			t.Errorf("%s lacks a case", c.Name)
		}
	}
}

// TestWithoutSystemd: the machine model always has one.
func TestWithoutSystemd(t *testing.T) {
	w := newWorld(t)
	v := newVisit(t.Context(), Preflight, w.o)
	v.Host = noSystemd{w.memory}
	if r := checkOS(t.Context(), v).result(); r.Status != Error || !strings.Contains(r.Finding, "not the service manager") {
		t.Errorf("%+v", r)
	}
}

type noSystemd struct{ host.Host }

func (noSystemd) Unit(context.Context, string) (host.UnitStatus, error) {
	return host.UnitStatus{}, fmt.Errorf("ask: %w", host.ErrNoSystemd)
}

func (w *world) cgroup2(controllers string) {
	w.mount("cgroup2", cgroupDir)
	if controllers != "" {
		w.memory.Put(cgroupDir+"/cgroup.controllers", controllers+"\n", 0o444)
	}
}

func (w *world) cgroup1() {
	for _, c := range needed {
		w.mount("cgroup", cgroupDir+"/"+c, c)
	}
}

func (w *world) mount(kind, target string, options ...string) {
	w.mounts = append(w.mounts, host.Mount{Source: kind, Target: target, Type: kind, Options: options})
}

// drained is what berth notes of a drain.
func (w *world) drained(text string) { w.memory.Put("/var/lib/berth/drained.json", text, 0o600) }

func (w *world) swap() { w.memory.Value("/proc/swaps", "Filename\tType\n/swapfile file 1 0 -2\n") }

func (w *world) route(to string) {
	w.survey.routes = append(w.survey.routes, survey.Route{Interface: "eth0", To: netip.MustParsePrefix(to)})
}

func (w *world) listens(address string, port uint16) {
	w.survey.listeners = append(w.survey.listeners, survey.Listener{Address: netip.MustParseAddr(address), Port: port})
}

func (w *world) artifact(url string) *desired.Artifact {
	a := &desired.Artifact{Name: "x", URLs: []string{url}, Files: []desired.ArtifactFile{{Path: "/x", Mode: 0o755}}}
	w.add(a)
	return a
}

func (w *world) reaches(sources ...artifact.Reached) { w.o.Fetcher = &fakeFetcher{sources: sources} }

// ca makes the cluster's CA another one.
func (w *world) ca(pem string) {
	w.state.Lookup(desired.CheckID(desired.CheckAPIServer)).(*desired.Check).CA = pem
}

// certificate makes the document's credential a certificate.
func (w *world) certificate(left time.Duration) {
	w.memory.Put("/own.pem", pairOf(w.t, time.Now().Add(-time.Hour), time.Now().Add(left)), 0o600)
	w.o.Config.Identity.ClientCertificate = &v1alpha1.ClientCertificate{CertFile: "/own.pem", KeyFile: "/own.pem"}
}

// azure makes the document's identity one of Azure, with a token or an error.
func (w *world) azure(text desired.Secret, err error) {
	w.credential(desired.ClientCertificate{Azure: &desired.AzureIdentity{Kind: desired.AzureManagedIdentity, ServerID: "6dae42f8-4368-4678-94ff-3960e28e3630"}})
	w.o.Tokens = func(context.Context, *desired.AzureIdentity, *desired.Egress) (desired.Secret, error) {
		return text, err
	}
}

// direct is a document whose kubelet shows the identity's tokens.
func (w *world) direct() {
	text, err := azureidentity.Marshal(desired.AzureIdentity{Kind: desired.AzureArc, ServerID: azureidentity.AKS})
	if err != nil {
		w.t.Fatal(err)
	}
	w.azure(token, nil)
	w.state.Resources = slices.DeleteFunc(w.state.Resources, func(r desired.Resource) bool { return r.Kind() == "credential" })
	w.add(&desired.File{Path: azureidentity.Path, Content: desired.SecretBytes(text), Mode: 0o600, Life: desired.Managed})
}

func (w *world) arc(says string, code int) {
	w.memory.Program("/usr/bin/azcmagent", func(c host.Command) host.Output {
		if strings.Join(c.Args, " ") != "show -j" {
			w.t.Errorf("azcmagent %q", c.Args)
		}
		return host.Output{Stdout: []byte(says), ExitCode: code}
	})
}

// azureGrants has Azure say how the cluster is reached, and what identities may do there;
// registers: the machine is registered, too, and given its role.
func (w *world) azureGrants(registers bool, err error, actions ...string) {
	who := &desired.AzureIdentity{Kind: desired.AzureManagedIdentity}
	w.o.References.Azure = &component.AzureCluster{ResourceID: "/c", Identity: who, Manager: "m"}
	if registers {
		w.o.References.Arc = &component.ArcRegistration{SubscriptionID: "s", ResourceGroup: "g", ClusterID: "/c", By: who, Manager: "m"}
	}
	w.o.Granted = func(_ context.Context, q AzureQuestion) ([]azure.Grant, error) {
		if q.Who != who || q.Manager != "m" {
			w.t.Errorf("%+v", q)
		}
		return []azure.Grant{{Actions: actions}}, err
	}
}

// unregistered has the join register the machine, and Azure asked as the machine.
func (w *world) unregistered() {
	w.azureGrants(true, errors.New("not to be asked"))
	w.o.References.Azure.Identity = &desired.AzureIdentity{Kind: desired.AzureArc}
	w.noState(errors.New("no answer"))
}

// arcWithServer has the join register the machine with a cluster that the document names.
func (w *world) arcWithServer() {
	w.azure("", errors.New("not to be asked"))
	w.credential(desired.ClientCertificate{Azure: &desired.AzureIdentity{Kind: desired.AzureArc, ServerID: azureidentity.AKS}})
	w.o.References.Arc = &component.ArcRegistration{}
}

// registers has the document say who registers the machine.
func (w *world) registers() {
	w.o.Config.Identity.Arc = &v1alpha1.Arc{Registration: &v1alpha1.ArcRegistration{AzureCLI: &v1alpha1.AzureCLI{}}}
}

// installs has the document name the package of the agent, too.
func (w *world) installs() {
	w.registers()
	w.memory.Put("/ca.pem", "a CA", 0o644)
	w.o.References.Arc = &component.ArcRegistration{CAFiles: []string{"/ca.pem"}, Agent: &desired.Artifact{Name: component.ArcPackage, URLs: []string{"https://x/"},
		Via: &desired.Egress{}, Files: []desired.ArtifactFile{{Path: component.ArcPackageFile}}}}
}

func (w *world) stop(unit string) {
	w.t.Helper()
	if err := w.memory.StopUnit(w.t.Context(), unit); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) runtime(r *fakeRuntime, err error) {
	w.o.Runtime = func(context.Context) (Runtime, error) { return r, err }
}

func (w *world) cni() { w.memory.Put(cni.ConfDir+"/10-x.conflist", "{}", 0o644) }

// ready is what the cluster says of the Node.
func (w *world) ready(status, message string) {
	w.api.node = fmt.Sprintf(`{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"node-1","uid":"u"},"status":{"nodeInfo":{"bootID":"boot"},
"conditions":[{"type":"Ready","status":%q,"reason":"r","message":%q,"lastHeartbeatTime":"2200-01-01T00:00:00Z"}]}}}`, status, message) + "\n"
}

func dated(skew time.Duration) func() string {
	return func() string { return time.Now().Add(skew).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT") }
}

func jwt(end time.Time) desired.Secret {
	body := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, end.Unix()))
	return desired.Secret("h." + body + ".s")
}

// A token is fetched the way that the document says, with its CAs.
func TestDirectTokenWay(t *testing.T) {
	h := memory.New()
	h.Put("/ca.pem", "ANOTHER", 0o644)
	text, err := azureidentity.Marshal(desired.AzureIdentity{Kind: desired.AzureArc, ServerID: azureidentity.AKS})
	if err != nil {
		t.Fatal(err)
	}
	st := &desired.State{}
	st.Add(&desired.File{Path: azureidentity.Path, Content: desired.SecretBytes(text), Mode: 0o600, Life: desired.Managed})
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	var got *desired.Egress
	v := &visit{Options: Options{Host: h, References: component.References{
		Way: &desired.Egress{HTTPSProxy: "http://proxy", CAs: []string{"ONE"}}, WayCAFiles: []string{"/ca.pem"}},
		Tokens: func(_ context.Context, _ *desired.AzureIdentity, via *desired.Egress) (desired.Secret, error) {
			got = via
			return token, nil
		}}}
	if _, err := v.directToken(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if want := (&desired.Egress{HTTPSProxy: "http://proxy", CAs: []string{"ONE", "ANOTHER"}}); got == nil || !slices.Equal(got.CAs, want.CAs) || got.HTTPSProxy != want.HTTPSProxy {
		t.Errorf("%+v", got)
	}
}

// TestDiskOfWhatBerthWrites: the thresholds are found in what berth itself gives to kubelet,
// in each way in which a document may have them.
func TestDiskOfWhatBerthWrites(t *testing.T) {
	low := map[string]string{"--eviction-hard": "memory.available<50Mi,nodefs.available<1%,imagefs.available<1%"}
	for name, c := range map[string]struct {
		flags  map[string]string
		config string
		others string
		want   Status
	}{
		"a flag":         {low, "", "", OK},
		"a flag wins":    {low, `{"evictionHard": {"nodefs.available": "30%"}}`, `"evictionHard": {"nodefs.available": "30%"}`, OK},
		"the file":       {nil, `{"evictionHard": {"nodefs.available": "1%"}}`, "", OK},
		"a drop-in":      {nil, "{}", `"evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%"}`, OK},
		"half a drop-in": {nil, "{}", `"evictionHard": {"nodefs.available": "1%"}`, Error},
		"the defaults":   {nil, "{}", "", Error},
		"another's file": {map[string]string{"--config": "/k/config"}, "", "", Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.survey.space.Free = 12 << 30
			s := kubelet.Settings{Version: "1.36.3", Flags: c.flags, Cluster: &kubelet.Cluster{Server: w.api.URL, CA: []byte(w.api.ca), Credential: kubelet.Credential{Token: token}}}
			if c.config != "" {
				s.Config = []byte(c.config)
			}
			all, err := kubelet.Resources(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				if f, ok := r.(*desired.File); ok && f.Life == desired.Managed {
					w.add(f)
				}
			}
			if c.others != "" {
				w.memory.Put(kubelet.ConfigDir+"/50-x.conf", dropIn(c.others), 0o600)
			}
			if r := w.check("disk", Preflight); r.Status != c.want {
				t.Errorf("%+v", r)
			}
		})
	}
}
