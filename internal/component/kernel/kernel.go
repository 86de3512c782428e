// Package kernel holds the kernel modules and parameters of a node.
package kernel

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// Where the settings for the next boot stand; the names are the published ones.
const (
	ModulesFile = "/etc/modules-load.d/kubernetes.conf"
	ForwardFile = "/etc/sysctl.d/99-force-bridge-forward.conf"
	SysctlFile  = "/etc/sysctl.d/999-sysctl-aks.conf"
)

// Settings are what differs from node to node.
type Settings struct {
	// Values are kernel parameters in dotted form. They go before the defaults.
	Values map[string]string
	// IPv6 says that the kernel has it.
	IPv6 bool
	// DualStack: pods have addresses of both families.
	DualStack bool
	// Kubelet: berth sets the parameters of kubelet, too. With protectKernelDefaults
	// kubelet refuses to start where they are not set; else it sets them itself, and
	// nobody knows what they were before.
	Kubelet bool
}

// evidence of each module's function: a module that is built in has no
// directory in /sys/module unless it has parameters.
var evidence = map[string][]string{
	"overlay":      {"/sys/module/overlay"},
	"br_netfilter": {"/sys/module/br_netfilter", "/proc/sys/net/bridge/bridge-nf-call-iptables"},
	"nf_conntrack": {"/sys/module/nf_conntrack", "/proc/sys/net/netfilter/nf_conntrack_max"},
	ip6Tables:      {"/sys/module/ip6_tables", "/proc/net/ip6_tables_names"},
}

// ip6Tables is for nodes with pods of both address families alone.
const ip6Tables = "ip6_tables"

// filesystem is the type that a module provides.
var filesystem = map[string]string{"overlay": "overlay"}

// Defaults are the published values for every node.
func Defaults() map[string]string {
	return map[string]string{
		"net.core.message_burst":            "80",
		"net.core.message_cost":             "40",
		"net.core.somaxconn":                "16384",
		"net.ipv4.neigh.default.gc_thresh1": "4096",
		"net.ipv4.neigh.default.gc_thresh2": "8192",
		"net.ipv4.neigh.default.gc_thresh3": "16384",
		"net.ipv4.tcp_max_syn_backlog":      "16384",
		"net.ipv4.tcp_retries2":             "8",
	}
}

// kubeletValues are what kubelet sets, or with protectKernelDefaults demands
// (k8s.io/component-helpers/node/util/sysctl).
var kubeletValues = map[string]string{
	"kernel.keys.root_maxbytes": "25000000",
	"kernel.keys.root_maxkeys":  "1000000",
	"kernel.panic":              "10",
	"kernel.panic_on_oops":      "1",
	"vm.overcommit_memory":      "1",
	"vm.panic_on_oom":           "0",
}

// Resources are the modules, the parameters and the files that bring both back
// after a reboot.
func Resources(s Settings) []desired.Resource {
	out := modules(s.DualStack)
	forward, tuning := forwarding(s.IPv6), Defaults()
	maps.Copy(tuning, s.Values)
	if s.Kubelet {
		maps.Copy(tuning, kubeletValues)
	}
	out = append(out, file(ForwardFile, lines(forward)), file(SysctlFile, lines(tuning)))
	out = append(out, s.live(forward, forward)...)
	return append(out, s.live(tuning, s.Values)...)
}

func modules(dualStack bool) []desired.Resource {
	names := slices.Sorted(maps.Keys(evidence))
	if !dualStack {
		names = slices.DeleteFunc(names, func(n string) bool { return n == ip6Tables })
	}
	out := []desired.Resource{file(ModulesFile, strings.Join(names, "\n")+"\n")}
	for _, n := range names {
		out = append(out, &desired.Module{Name: n, Evidence: evidence[n], Filesystem: filesystem[n]})
	}
	return out
}

// forwarding lets the machine route between pods and the network, and lets
// netfilter see what a bridge forwards.
func forwarding(ipv6 bool) map[string]string {
	out := map[string]string{
		"net.bridge.bridge-nf-call-iptables": "1",
		"net.ipv4.conf.all.forwarding":       "1",
		"net.ipv4.ip_forward":                "1",
	}
	if ipv6 {
		out["net.ipv6.conf.all.forwarding"] = "1"
	}
	return out
}

func file(path, text string) *desired.File {
	return &desired.File{Path: path, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}

func lines(values map[string]string) string {
	var b strings.Builder
	b.WriteString("# Written by berth.\n")
	for _, k := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(k + " = " + values[k] + "\n")
	}
	return b.String()
}

// live are the parameters themselves. A value that nobody asked for may be one
// that this kernel does not have. What berth sets for kubelet is what kubelet would
// write itself.
func (s Settings) live(values, asked map[string]string) []desired.Resource {
	var out []desired.Resource
	for _, k := range slices.Sorted(maps.Keys(values)) {
		_, explicit := asked[k]
		out = append(out, &desired.Sysctl{
			Base: desired.Base{After: needs(k)}, Key: k, Value: values[k],
			KubeletWrites: kubeletValues[k] != "" && !s.Kubelet, Optional: !explicit,
		})
	}
	return out
}

// needs names the module that brings a parameter into being.
func needs(key string) []desired.ID {
	switch {
	case strings.HasPrefix(key, "net.bridge."):
		return []desired.ID{desired.ModuleID("br_netfilter")}
	case strings.HasPrefix(key, "net.netfilter."):
		return []desired.ID{desired.ModuleID("nf_conntrack")}
	}
	return nil
}
