package faults_test

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/component/hugepages"
	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/provision"
)

// parameters are the values that the kernel starts with.
var parameters = map[string]string{
	"fs.aio-max-nr": "65536", "fs.file-max": "9223372036854775807", "fs.inotify.max_user_watches": "8192", "fs.nr_open": "1048576",
	"kernel.keys.root_maxbytes": "25000000", "kernel.keys.root_maxkeys": "1000000", "kernel.panic": "0",
	"kernel.panic_on_oops": "0", "kernel.threads-max": "30000",
	"net.core.message_burst": "10", "net.core.message_cost": "5", "net.core.netdev_max_backlog": "1000",
	"net.core.optmem_max": "20480", "net.core.rmem_default": "212992", "net.core.rmem_max": "212992", "net.core.somaxconn": "4096",
	"net.core.wmem_default": "212992", "net.core.wmem_max": "212992",
	"net.ipv4.conf.all.forwarding": "0", "net.ipv4.ip_forward": "0", "net.ipv6.conf.all.forwarding": "0",
	"net.ipv4.ip_local_port_range": "32768\t60999", "net.ipv4.ip_local_reserved_ports": "",
	"net.ipv4.neigh.default.gc_thresh1": "128", "net.ipv4.neigh.default.gc_thresh2": "512", "net.ipv4.neigh.default.gc_thresh3": "1024",
	"net.ipv4.tcp_fin_timeout": "60", "net.ipv4.tcp_keepalive_intvl": "75", "net.ipv4.tcp_keepalive_probes": "9",
	"net.ipv4.tcp_keepalive_time": "7200", "net.ipv4.tcp_max_syn_backlog": "512", "net.ipv4.tcp_max_tw_buckets": "8192",
	"net.ipv4.tcp_retries2": "15", "net.ipv4.tcp_tw_reuse": "2",
	"vm.max_map_count": "65530", "vm.overcommit_memory": "0", "vm.panic_on_oom": "0", "vm.swappiness": "60", "vm.vfs_cache_pressure": "100",
}

// brought are the parameters that appear with a module.
var brought = map[string]map[string]string{
	"overlay":      {},
	"br_netfilter": {"net.bridge.bridge-nf-call-iptables": "0"},
	"ip6_tables":   {},
	"nf_conntrack": {"net.netfilter.nf_conntrack_max": "65536", "net.netfilter.nf_conntrack_buckets": "16384"},
}

func parameter(key string) string { return "/proc/sys/" + strings.ReplaceAll(key, ".", "/") }

// Boot services come before the daemons. The model's targets are always active,
// so the order is spelled out.
const (
	loadModules = "[Unit]\nBefore=systemd-sysctl.service containerd.service kubelet.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/lib/systemd/systemd-modules-load\n"
	makeFiles   = "[Unit]\nBefore=containerd.service kubelet.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/lib/systemd/systemd-tmpfiles\n"
	setValues   = "[Unit]\nAfter=systemd-modules-load.service\nBefore=containerd.service kubelet.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/lib/systemd/systemd-sysctl\n"
)

// kernel gives a machine its parameters, huge pages, and the services that load modules
// and set parameters at boot from /etc.
func kernel(h *memory.Host) {
	hugePages(h)
	for key, value := range parameters {
		h.Value(parameter(key), value+"\n")
	}
	h.Put("/proc/filesystems", "nodev\tproc\n\text4\n", 0o444)
	for name, text := range map[string]string{"systemd-modules-load.service": loadModules, "systemd-sysctl.service": setValues, "systemd-tmpfiles-setup.service": makeFiles} {
		h.Put("/usr/lib/systemd/system/"+name, text, 0o644)
		h.PutLink("../"+name, "/usr/lib/systemd/system/sysinit.target.wants/"+name, 0)
	}
}

// setsKernel are modprobe, and what those services run.
func setsKernel(h *memory.Host) {
	h.Program("/usr/sbin/modprobe", func(c host.Command) host.Output {
		return host.Output{ExitCode: modprobe(h, c.Args[len(c.Args)-1])}
	})
	h.Program("/usr/lib/systemd/systemd-modules-load", func(host.Command) host.Output {
		unload(h)
		eachLine(h, "/etc/modules-load.d", func(name string) { modprobe(h, name) })
		return host.Output{}
	})
	h.Program("/usr/lib/systemd/systemd-sysctl", func(host.Command) host.Output {
		eachLine(h, "/etc/sysctl.d", func(line string) {
			key, value, _ := strings.Cut(line, "=")
			_ = h.WriteValue(parameter(strings.TrimSpace(key)), []byte(strings.TrimSpace(value)))
		})
		return host.Output{}
	})
	h.Program("/usr/lib/systemd/systemd-tmpfiles", func(host.Command) host.Output {
		eachLine(h, "/etc/tmpfiles.d", func(line string) {
			if f := strings.Fields(line); f[0] == "w" {
				_ = h.WriteValue(f[1], []byte(f[6]))
			}
		})
		return host.Output{}
	})
}

// ownProgram is berth itself, which kubelet's service calls before kubelet starts.
func ownProgram(h *memory.Host) {
	verbs := map[string]func(context.Context, host.Host) error{"firewall": provision.RestorePacketFilter, "swap": provision.RestoreSwap}
	h.Program(packetfilter.Program, func(c host.Command) host.Output {
		if err := verbs[c.Args[1]](tctx, h); err != nil {
			return host.Output{ExitCode: 1, Stderr: []byte(err.Error())}
		}
		return host.Output{}
	})
}

// hugePages are the kernel's choices.
func hugePages(h *memory.Host) {
	for p, words := range map[string]string{hugepages.Enabled: "always madvise never", hugepages.Defrag: "always defer defer+madvise madvise never"} {
		h.ValueFunc(p, strings.Replace(words, " madvise ", " [madvise] ", 1)+"\n", func(_, written string) (string, error) {
			list := strings.Fields(words)
			at := slices.Index(list, strings.TrimSpace(written))
			if at < 0 {
				return "", syscall.EINVAL
			}
			list[at] = "[" + list[at] + "]"
			return strings.Join(list, " ") + "\n", nil
		})
	}
}

// allocates gives files a size.
func allocates(h *memory.Host) {
	h.Program("/usr/bin/fallocate", func(c host.Command) host.Output {
		size, err := strconv.Atoi(c.Args[1])
		check(err)
		name := c.Args[len(c.Args)-1]
		info, err := h.Lstat(name)
		check(err)
		f, err := h.Append(name)
		check(err)
		_, err = f.Write(make([]byte, size-int(info.Size)))
		check(err)
		check(f.Close())
		return host.Output{}
	})
}

func modprobe(h *memory.Host, name string) int {
	values, known := brought[name]
	if !known {
		return 1
	}
	if _, err := h.Lstat("/sys/module/" + name); err == nil {
		return 0
	}
	h.PutDir("/sys/module/" + name)
	for key, value := range values {
		h.Value(parameter(key), value+"\n")
	}
	return 0
}

// unload is what a boot does to modules and what they brought.
func unload(h *memory.Host) {
	for name, values := range brought {
		_ = h.Remove("/sys/module/" + name)
		for key := range values {
			_ = h.Remove(parameter(key))
		}
	}
}

// eachLine visits the lines of the .conf files of a directory.
func eachLine(h *memory.Host, dir string, visit func(string)) {
	names, err := h.ReadDir(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		data, err := h.ReadFile(dir + "/" + name)
		if err != nil || path.Ext(name) != ".conf" {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				visit(line)
			}
		}
	}
}
