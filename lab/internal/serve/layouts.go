package serve

import "path/filepath"

// The archives have the layout of the published ones, so a node unpacks them
// as it would unpack those. Each function takes the paths of programs; the
// name inside is the file's base name.

// KubernetesNode is kubernetes-node-linux-amd64.tar.gz: kubelet, kubectl,
// kubeadm …
func KubernetesNode(programs ...string) []Entry {
	return append(under("kubernetes/node/bin", programs),
		Entry{Name: "kubernetes/LICENSES", Data: []byte("see the programs\n"), Mode: 0o644})
}

// Containerd is containerd-<version>-linux-amd64.tar.gz: containerd,
// containerd-shim-runc-v2, ctr; upstream ships runc apart, but takes it here
// as well.
func Containerd(programs ...string) []Entry { return under("bin", programs) }

// CNIPlugins is cni-plugins-linux-amd64-<version>.tgz: names start with "./".
func CNIPlugins(programs ...string) []Entry { return under("./", programs) }

// CredentialProvider is azure-acr-credential-provider-linux-amd64.tar.gz.
func CredentialProvider(program string) []Entry { return under("", []string{program}) }

func under(dir string, programs []string) []Entry {
	var entries []Entry
	for _, p := range programs {
		name := filepath.Base(p)
		switch dir {
		case "", "./":
			name = dir + name
		default:
			name = dir + "/" + name
		}
		entries = append(entries, Entry{Name: name, Source: p})
	}
	return entries
}
