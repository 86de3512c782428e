package site

import (
	"compress/gzip"
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// Programs is an HTTP server on the lab's gateway with archives. The URLs carry the
// digests.
type Programs struct {
	*serve.Artifacts
	Kubernetes, Containerd, Runc, CNI string

	server *serve.Server
	files  map[string]string // by URL
}

// Archives are files with everything that a bare image lacks, packed as upstream packs it.
type Archives struct {
	Kubernetes, Containerd, Runc, CNI string
}

// Pack packs the lab's programs below dir, compressed at a level of package gzip.
func Pack(ctx context.Context, l *lab.Lab, dir string, level int) (*Archives, error) {
	version, err := containerdVersion(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("pack programs: %w", err)
	}
	runtime := l.RuntimePrograms()
	a := &Archives{
		Kubernetes: filepath.Join(dir, "kubernetes-node-linux-amd64.tar.gz"), Containerd: filepath.Join(dir, "containerd-"+version+"-linux-amd64.tar.gz"),
		Runc: filepath.Join(runtime, "runc"), CNI: filepath.Join(dir, "cni-plugins-linux-amd64.tgz"),
	}
	for file, entries := range map[string][]serve.Entry{
		a.Kubernetes: serve.KubernetesNode(below(l.Programs(), "kubelet", "kubectl", "kubeadm")...),
		a.Containerd: serve.Containerd(below(runtime, "containerd", "containerd-shim-runc-v2", "ctr")...),
		a.CNI:        serve.CNIPlugins(below(runtime, "cni/bridge", "cni/host-local", "cni/loopback", "cni/portmap", "cni/ptp")...),
	} {
		if _, err := serve.WriteTarGz(file, level, entries...); err != nil {
			return nil, fmt.Errorf("pack programs: %w", err)
		}
	}
	return a, nil
}

// Serve serves archives, which must last as long as the server.
func Serve(ctx context.Context, l *lab.Lab, a *Archives) (*Programs, error) {
	listener, err := l.Listen(ctx, "tcp", netip.AddrPortFrom(l.Gateway(), 0).String())
	if err != nil {
		return nil, fmt.Errorf("serve programs: %w", err)
	}
	p := &Programs{Artifacts: serve.NewArtifacts(), files: map[string]string{}}
	p.server = serve.Start(listener, p.Artifacts)
	for url, file := range map[*string]string{&p.Kubernetes: a.Kubernetes, &p.Containerd: a.Containerd, &p.CNI: a.CNI} {
		if *url, err = p.file(filepath.Base(file), file); err != nil {
			break
		}
	}
	if err == nil {
		p.Runc, err = p.file("runc.amd64", a.Runc)
	}
	if err != nil {
		_ = p.server.Close()
		return nil, fmt.Errorf("serve programs: %w", err)
	}
	return p, nil
}

// Close ends the server.
func (p *Programs) Close() error { return p.server.Close() }

// KubeletBefore serves the kubelet of the minor before as well, packed below dir, and
// returns its version and URL.
func (p *Programs) KubeletBefore(ctx context.Context, l *lab.Lab, dir string) (version, url string, err error) {
	program, err := l.KubeletBefore(ctx)
	if err != nil {
		return "", "", err
	}
	out, err := l.Command(ctx, program, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("kubelet --version: %w", err)
	}
	version = strings.TrimPrefix(strings.TrimSpace(string(out)), "Kubernetes v")
	const name = "kubernetes-node-before-linux-amd64.tar.gz"
	file := filepath.Join(dir, name)
	if _, err := serve.WriteTarGz(file, gzip.NoCompression, serve.KubernetesNode(append(below(l.Programs(), "kubectl", "kubeadm"), program)...)...); err != nil {
		return "", "", err
	}
	url, err = p.file(name, file)
	return version, url, err
}

func below(dir string, names ...string) []string {
	var out []string
	for _, n := range names {
		out = append(out, filepath.Join(dir, n))
	}
	return out
}

// file serves a file and returns its URL with the digest.
func (p *Programs) file(name, file string) (string, error) {
	blob, err := p.AddFile(name, file)
	if err != nil {
		return "", err
	}
	url := p.server.URL() + blob.Path + "#sha256=" + blob.SHA256
	p.files[url] = file
	return url, nil
}

// Configure makes a node fetch everything.
func (p *Programs) Configure(c *aksnodeconfigv1.Configuration) {
	c.KubeBinaryConfig.CustomKubeBinaryUrl = p.Kubernetes
	c.ContainerdConfig = &aksnodeconfigv1.ContainerdConfig{ContainerdPackageUrl: p.Containerd}
	c.RuncConfig = &aksnodeconfigv1.RuncConfig{RuncPackageUrl: p.Runc}
	c.NetworkConfig.CniPluginsUrl = p.CNI
}

// ConfigureNode is Configure of a NodeConfig, which says versions, too: those of
// images/runtime/go.mod.
func (p *Programs) ConfigureNode(c *v1alpha1.NodeConfig) {
	c.Components.Kubernetes.URLs = []string{p.Kubernetes}
	c.Components.Containerd = v1alpha1.Component{Version: "2.2.9", URLs: []string{p.Containerd}}
	c.Components.Runc = v1alpha1.Component{Version: "1.4.3", URLs: []string{p.Runc}}
	c.Components.CNI = v1alpha1.Component{Version: "1.9.1", URLs: []string{p.CNI}}
}

// CutOff is Configure for a node without network: each URL keeps its file name
// and digest, but its host and that of the sandbox image do not exist.
func (p *Programs) CutOff(c *aksnodeconfigv1.Configuration) {
	p.Configure(c)
	for _, url := range []*string{&c.KubeBinaryConfig.CustomKubeBinaryUrl, &c.ContainerdConfig.ContainerdPackageUrl,
		&c.RuncConfig.RuncPackageUrl, &c.NetworkConfig.CniPluginsUrl} {
		*url = Nowhere(*url)
	}
	c.KubeBinaryConfig.PodInfraContainerImageUrl = PauseImage
}

// Nowhere is a URL with the same file name and digest of a host that does not exist.
func Nowhere(url string) string {
	return "https://files.nowhere.test" + url[strings.LastIndexByte(url, '/'):]
}

// containerdVersion asks the lab's containerd.
func containerdVersion(ctx context.Context, l *lab.Lab) (string, error) {
	out, err := l.Command(ctx, filepath.Join(l.RuntimePrograms(), "containerd"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("containerd --version: %w", err)
	}
	fields := strings.Fields(string(out))
	if len(fields) < 3 {
		return "", fmt.Errorf("containerd --version says %q", out)
	}
	return strings.TrimPrefix(fields[2], "v"), nil
}
