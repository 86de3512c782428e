package faults_test

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	bundle  = "/etc/ssl/certs/ca-certificates.crt"
	anchors = "/usr/local/share/ca-certificates"
)

// distributed is what the package of CA certificates brings.
const distributed = "# certificates of the distribution\n"

// updatesTrust is Debian's command: it writes the bundle anew beside it, renames
// it, and leaves its durability to the kernel.
func updatesTrust(h *memory.Host) {
	h.Program("/usr/sbin/update-ca-certificates", func(host.Command) host.Output {
		out := bytes.NewBufferString(distributed)
		names, _ := h.ReadDir(anchors)
		for _, n := range names {
			if strings.HasSuffix(n, ".crt") {
				data, _ := h.ReadFile(anchors + "/" + n)
				out.Write(data)
			}
		}
		return host.Output{ExitCode: rewrite(h, bundle, out.Bytes())}
	})
}

func rewrite(h *memory.Host, p string, content []byte) int {
	_ = h.Remove(p + ".new")
	f, err := h.Create(p + ".new")
	if err != nil {
		return 1
	}
	_, err = f.Write(content)
	if err != nil || f.Chmod(0o644) != nil || f.Close() != nil || h.Rename(p+".new", p) != nil {
		return 1
	}
	return 0
}

// kubeletReads are the files that kubelet opens when it starts.
var kubeletReads = []string{
	"/etc/default/kubelet", "/etc/default/kubeletconfig.json", "/etc/kubernetes/certs/ca.crt",
	"/etc/kubernetes/azure.json", "/etc/kubernetes/akscustom.json",
	"/var/lib/kubelet/kubeconfig", "/var/lib/kubelet/pki/kubelet-client-current.pem", "/opt/bin/kubelet",
}

// containerdReads are those of containerd. The template of the pod network it reads when kubelet
// tells it addresses.
var containerdReads = []string{
	"/etc/containerd/config.toml", bundle,
	"/usr/bin/containerd", "/usr/local/bin/containerd",
}

// demanded are the values without which a kubelet that protects the kernel's
// defaults refuses to start.
var demanded = map[string]string{
	"kernel.keys.root_maxbytes": "25000000", "kernel.keys.root_maxkeys": "1000000", "kernel.panic": "10",
	"kernel.panic_on_oops": "1", "vm.overcommit_memory": "1", "vm.panic_on_oom": "0",
}

// daemons makes containerd and kubelet as demanding as they are: what they need
// must be there and whole when they start.
func daemons(h *memory.Host) {
	for unit, starts := range starting {
		h.Behave(unit, func(memory.Start) memory.Outcome { return startsIf(starts(h)) })
	}
	servesSSH(h)
}

// starting says whether a unit starts.
var starting = map[string]func(*memory.Host) bool{"containerd.service": containerdStarts, "kubelet.service": kubeletStarts}

func startsIf(ok bool) memory.Outcome {
	if ok {
		return memory.Outcome{}
	}
	return memory.Outcome{Status: 1}
}

// loaded says that one of the programs is there and whole.
func loaded(h *memory.Host, paths ...string) bool {
	for _, p := range paths {
		if data, err := h.ReadFile(p); err == nil {
			return versionOf(string(data)) != ""
		}
	}
	return false
}

func containerdStarts(h *memory.Host) bool {
	config, err := h.ReadFile("/etc/containerd/config.toml")
	return err == nil && bytes.Contains(config, []byte("version = ")) && loaded(h, "/usr/bin/containerd", "/usr/local/bin/containerd")
}

// kubeletStarts says whether kubelet starts; then it registers.
func kubeletStarts(h *memory.Host) bool {
	if !kubeletCanStart(h) {
		return false
	}
	register(h)
	addresses(h)
	return true
}

func kubeletCanStart(h *memory.Host) bool {
	config, err := h.ReadFile("/etc/default/kubeletconfig.json")
	flags, err2 := h.ReadFile("/etc/default/kubelet")
	kubeconfig, err3 := h.ReadFile("/var/lib/kubelet/kubeconfig")
	ca, err4 := h.ReadFile("/etc/kubernetes/certs/ca.crt")
	for key, value := range demanded {
		have, err := h.ReadFile(parameter(key))
		if err != nil || strings.TrimSpace(string(have)) != value {
			return false
		}
	}
	return err == nil && err2 == nil && err3 == nil && err4 == nil && loaded(h, "/opt/bin/kubelet") && json.Valid(config) &&
		bytes.Contains(flags, []byte("KUBELET_FLAGS=")) && bytes.Contains(kubeconfig, []byte("kubelet-client-current.pem")) &&
		bytes.Contains(ca, []byte("END CERTIFICATE"))
}
