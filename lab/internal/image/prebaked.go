package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Programs is where the node programs were built.
type Programs struct {
	Kubernetes string // kubelet, kubectl, kubeadm
	Runtime    string // containerd, containerd-shim-runc-v2, ctr, runc, cni/
}

// prebaked is what a node image of AKS carries besides the distribution.
func prebaked(p Programs) layer {
	files := map[string]string{
		"opt/bin/kubelet":                 p.Kubernetes + "/kubelet",
		"usr/local/bin/kubectl":           p.Kubernetes + "/kubectl",
		"usr/local/bin/kubeadm":           p.Kubernetes + "/kubeadm",
		"usr/bin/containerd":              p.Runtime + "/containerd",
		"usr/bin/containerd-shim-runc-v2": p.Runtime + "/containerd-shim-runc-v2",
		"usr/bin/ctr":                     p.Runtime + "/ctr",
		"usr/bin/runc":                    p.Runtime + "/runc",
	}
	for _, plugin := range []string{"bridge", "host-local", "loopback", "portmap", "ptp"} {
		files["opt/cni/bin/"+plugin] = p.Runtime + "/cni/" + plugin
	}
	links := map[string]string{
		"usr/local/bin/kubelet":    "/opt/bin/kubelet", // kubeadm looks in PATH
		"usr/local/bin/containerd": "/usr/bin/containerd",
	}
	return layer{name: "prebaked", links: links, from: fmt.Sprint(files), fill: func(ctx context.Context, dir string) error {
		return installAll(dir, files)
	}}
}

func installAll(dir string, files map[string]string) error {
	for dest, src := range files {
		if err := Install(filepath.Join(dir, dest), src); err != nil {
			return err
		}
	}
	return nil
}

// Install puts a program at dest, by hard link where that is possible: layers
// are read-only.
func Install(dest, src string) error {
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return fmt.Errorf("create layer directory: %w", err)
	}
	if err := os.Link(src, dest); err == nil {
		return nil
	}
	return copyFile(dest, src)
}

func copyFile(dest, src string) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return fmt.Errorf("open program: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(dest, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("create program: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("copy program: %w", err)
	}
	return nil
}
