package aks

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/berth-dev/berth/internal/component/hugepages"
	"github.com/berth-dev/berth/internal/component/kernel"
	"github.com/berth-dev/berth/internal/component/swap"
	"github.com/berth-dev/berth/internal/desired"
)

func (t *translation) kernel() error {
	s := kernel.Settings{Values: t.sysctls(), IPv6: t.facts.IPv6, DualStack: dualStack(t)}
	if t.joins() {
		settings, err := t.kubeletFlagsAndConfig()
		if err != nil {
			return err
		}
		s.Kubelet = settings.ProtectsKernelDefaults()
	}
	ids := t.add("custom_linux_os_config.sysctl_config", kernel.Resources(s)...)
	t.runtime = append(t.runtime, desired.ModuleID("overlay"), desired.ModuleID("br_netfilter"))
	if s.Kubelet {
		t.node = append(t.node, ids...)
	}
	t.add("", kernel.Deny(kernel.System{Release: t.facts.Kernel, ID: t.facts.Distribution, Version: t.facts.Release, Variant: t.facts.Variant})...)
	t.hugePages()
	return t.swap()
}

func (t *translation) hugePages() {
	c := t.cfg.GetCustomLinuxOsConfig()
	fields := map[string]string{
		hugepages.Enabled: "custom_linux_os_config.transparent_hugepage_support", hugepages.Defrag: "custom_linux_os_config.transparent_defrag",
	}
	for _, r := range hugepages.Resources(hugepages.Settings{Enabled: c.GetTransparentHugepageSupport(), Defrag: c.GetTransparentDefrag()}) {
		field := "custom_linux_os_config"
		if s, ok := r.(*desired.Sysfs); ok {
			field = fields[s.Path]
		}
		t.add(field, r)
	}
}

// swapUnit is a megabyte of the contract: the published scripts take 1000 KiB for it.
const swapUnit = 1000 << 10

// swap is in use before kubelet starts, which reads then what there is.
func (t *translation) swap() error {
	if !swaps(t) {
		return nil
	}
	rs, err := swap.Resources(swap.Settings{
		Bytes: int64(t.cfg.GetCustomLinuxOsConfig().GetSwapFileSize()) * swapUnit, Program: t.facts.Program,
		ResourceDisk: t.facts.ResourceDisk, ResourceDiskBytes: t.facts.ResourceDiskBytes,
	})
	if err != nil {
		return err
	}
	ids := t.add("custom_linux_os_config.swap_file_size", rs...)
	if t.joins() {
		t.node = append(t.node, ids...)
	}
	return nil
}

// sysctls are the parameters that the contract sets.
func (t *translation) sysctls() map[string]string {
	out := map[string]string{}
	m := t.cfg.GetCustomLinuxOsConfig().GetSysctlConfig()
	m.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		value := v.String()
		if fd.Kind() == protoreflect.BoolKind {
			value = map[bool]string{true: "1", false: "0"}[v.Bool()]
		}
		out[sysctlKey(string(fd.Name()))] = value
		return true
	})
	if ports, ok := out[portRange]; ok {
		out[portRange] = plainPorts(ports)
	}
	if reserved := reservedPort(out[portRange]); reserved != "" {
		out["net.ipv4.ip_local_reserved_ports"] = reserved
	}
	return out
}

const portRange = "net.ipv4.ip_local_port_range"

// plainPorts writes two ports as the kernel prints them: it would read a zero
// before a number as octal.
func plainPorts(text string) string {
	ports := strings.Fields(text)
	for i, p := range ports {
		if n, err := strconv.ParseUint(p, 10, 16); err == nil {
			ports[i] = strconv.FormatUint(n, 10)
		}
	}
	return strings.Join(ports, " ")
}

// ports from 65330 on: this one is the platform's, whatever the range says.
func reservedPort(ports string) string {
	const first = 65330
	fields := strings.Fields(ports)
	if len(fields) != 2 {
		return ""
	}
	if last, err := strconv.Atoi(fields[1]); err != nil || last <= first {
		return ""
	}
	return strconv.Itoa(first)
}

// irregular are fields whose names are not their key with dots for underscores.
var irregular = map[string]string{
	"fs_aio_max_nr":               "fs.aio-max-nr",
	"fs_file_max":                 "fs.file-max",
	"kernel_threads_max":          "kernel.threads-max",
	"net_ipv4_tcpkeepalive_intvl": "net.ipv4.tcp_keepalive_intvl",
}

// groups are the directories below /proc/sys that fields name.
var groups = []string{
	"net_ipv4_neigh_default_", "net_core_", "net_ipv4_", "net_netfilter_", "fs_inotify_", "fs_", "kernel_", "vm_",
}

// sysctlKey is the key of a field: net_ipv4_tcp_tw_reuse is net.ipv4.tcp_tw_reuse.
func sysctlKey(field string) string {
	if key, ok := irregular[field]; ok {
		return key
	}
	for _, g := range groups {
		if rest, ok := strings.CutPrefix(field, g); ok {
			return strings.ReplaceAll(g, "_", ".") + rest
		}
	}
	return field
}
