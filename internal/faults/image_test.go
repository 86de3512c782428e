package faults_test

import (
	"strings"
	"sync"

	"github.com/berth-dev/berth/internal/host/memory"
)

// vendorContainerd is the unit that a distribution's package brings.
// vendorNetworkd is on each image, where netplan's files are its settings.
const vendorNetworkd = `[Unit]
Description=Network Configuration
Wants=network.target
[Service]
Type=notify
ExecStart=!!/usr/lib/systemd/systemd-networkd
ExecReload=networkctl reload
Restart=on-failure
[Install]
WantedBy=multi-user.target
Alias=dbus-org.freedesktop.network1.service
`

const vendorContainerd = `[Unit]
Description=containerd container runtime
After=network.target local-fs.target dbus.service
[Service]
Type=notify
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/bin/containerd
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
[Install]
WantedBy=multi-user.target
`

// imageKubelet is a unit that the image's makers left: berth replaces it and
// keeps the original.
const imageKubelet = `[Unit]
Description=Kubelet
[Service]
ExecStart=/opt/bin/kubelet
[Install]
WantedBy=multi-user.target
`

const vendorConfig = "version = 3\nroot = '/var/lib/containerd'\n"

// distribution is what both images have: a kernel, its boot services, a trust
// store and an empty network.
func distribution(hostname string) *memory.Host {
	h := memory.New()
	h.Put("/etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n", 0o644)
	h.Put("/etc/hostname", hostname+"\n", 0o644)
	h.Value("/proc/sys/kernel/hostname", hostname+"\n")
	h.Value("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
	kernel(h)
	h.PutDir(anchors)
	h.Put(bundle, distributed, 0o644)
	h.Put("/usr/lib/systemd/system/systemd-networkd.service", vendorNetworkd, 0o644)
	h.Put("/usr/lib/systemd/systemd-networkd", "", 0o755)
	h.PutDir("/etc/kubernetes")
	h.PutDir("/mnt")
	h.Reads("containerd.service", containerdReads...)
	h.Reads("kubelet.service", kubeletReads...)
	software(h)
	return h
}

// software is what runs on a machine.
func software(h *memory.Host) {
	for _, of := range []func(*memory.Host){setsKernel, allocates, updatesTrust, patches, daemons, ownProgram, runtime} {
		of(h)
	}
}

// copied makes one machine and hands out copies of it.
func copied(machine func() *memory.Host) func() *memory.Host {
	first := sync.OnceValue(machine)
	return func() *memory.Host { return furnished(first()) }
}

// furnished is a copy of a machine, with software that runs on it.
func furnished(h *memory.Host) *memory.Host {
	c := h.Clone()
	software(c)
	return c
}

// prebaked is an image with every program, a running containerd of the
// distribution, and a unit for kubelet that is not the one wanted.
func prebaked() *memory.Host {
	h := distribution("Node-1")
	for p, version := range programs {
		h.Put(p, program(p, version), 0o755)
	}
	h.Put("/usr/lib/systemd/system/containerd.service", vendorContainerd, 0o644)
	h.PutLink("/usr/lib/systemd/system/containerd.service", "/etc/systemd/system/multi-user.target.wants/containerd.service", 0)
	h.Put("/etc/containerd/config.toml", vendorConfig, 0o644)
	h.Put("/etc/systemd/system/kubelet.service", imageKubelet, 0o644)
	h.Boot()
	return h
}

// bare is an image that knows nothing of containers.
func bare() *memory.Host {
	h := distribution("bare")
	h.Boot()
	return h
}

// outdated is one whose programs are of other versions than those wanted.
func outdated() *memory.Host {
	h := distribution("old")
	for _, p := range []string{"/usr/local/bin/containerd", "/usr/local/sbin/runc", "/opt/bin/kubelet", "/opt/bin/kubectl"} {
		h.Put(p, program(p, "1.0.0"), 0o755)
	}
	h.Boot()
	return h
}

// packed is one that holds the programs of Kubernetes in packages which nobody has
// installed, and the kubelet of another version.
func packed() *memory.Host {
	h := outdated()
	for _, file := range packages {
		h.Put(file, "", 0o644)
	}
	return h
}

var packages = []string{"/opt/kubelet/downloads/kubelet_1.36.3-1_amd64.deb", "/opt/kubectl/downloads/kubectl-1.36.3-1.azl3.x86_64.rpm",
	"/opt/azure-acr-credential-provider/downloads/azure-acr-credential-provider_1.36.1-1_amd64.deb"}

// programs are those of the prebaked image, with what they say of themselves.
var programs = map[string]string{
	"/usr/bin/containerd":              "2.2.1",
	"/usr/bin/containerd-shim-runc-v2": "2.2.1",
	"/usr/bin/runc":                    "1.3.3",
	"/opt/bin/kubelet":                 "1.36.3",
	"/opt/bin/kubectl":                 "1.36.3",
	"/opt/cni/bin/bridge":              "1.0.0",
	"/opt/cni/bin/host-local":          "1.0.0",
	"/opt/cni/bin/loopback":            "1.0.0",
	"/opt/cni/bin/portmap":             "1.0.0",
}

// program is the content of a program: its name and its version in one line.
func program(p, version string) string { return "program " + p + " version " + version + "\n" }

// versionOf is the version that a program's content tells; "" for what is none.
func versionOf(content string) string {
	_, version, _ := strings.Cut(strings.TrimSuffix(content, "\n"), " version ")
	return version
}
