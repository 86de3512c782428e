package build

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/lab/internal/cache"
)

// Kubernetes compiles kube-apiserver, kube-controller-manager, kube-scheduler,
// kubelet, kubectl, kubeadm and etcd from the module lab/images/k8s and
// returns the directory that holds them.
func Kubernetes(ctx context.Context, c *cache.Cache, lab string) (string, error) {
	dir := filepath.Join(lab, "images", "k8s")
	return compile(ctx, c, dir, "k8s", "Kubernetes and etcd", kubernetesTargets)
}

// KubeletBefore compiles kubelet of the minor before Kubernetes' from the module
// lab/images/k8s-before and returns the directory that holds it.
func KubeletBefore(ctx context.Context, c *cache.Cache, lab string) (string, error) {
	dir := filepath.Join(lab, "images", "k8s-before")
	return compile(ctx, c, dir, "k8s-before", "kubelet of the minor before", kubeletTarget)
}

// Runtime compiles containerd, its shim, ctr, runc, the CNI plugins (in cni/)
// and crane from the module lab/images/runtime.
func Runtime(ctx context.Context, c *cache.Cache, lab string) (string, error) {
	dir := filepath.Join(lab, "images", "runtime")
	return compile(ctx, c, dir, "runtime", "containerd, runc and the CNI plugins", runtimeTargets)
}

// CoreDNS compiles the name server of nodes from the module lab/images/coredns and
// returns the directory that holds it.
func CoreDNS(ctx context.Context, c *cache.Cache, lab string) (string, error) {
	dir := filepath.Join(lab, "images", "coredns")
	one := func(context.Context, string) ([]target, error) {
		return []target{{out: "coredns", ldflags: "-s -w", packages: []string{"."}}}, nil
	}
	return compile(ctx, c, dir, "coredns", "CoreDNS", one, "main.go")
}

// Snapshotter compiles the snapshotter of the module lab/images/runtime and returns the
// directory that holds it.
func Snapshotter(ctx context.Context, c *cache.Cache, lab string) (string, error) {
	dir := filepath.Join(lab, "images", "runtime")
	one := func(context.Context, string) ([]target, error) {
		return []target{{out: "snapshotter", ldflags: "-s -w", packages: []string{"./snapshotter"}}}, nil
	}
	return compile(ctx, c, dir, "snapshotter", "a snapshotter", one, "snapshotter/main.go")
}

// compile builds targets of a module. sources are files of it that the module's
// versions don't tell of.
func compile(ctx context.Context, c *cache.Cache, dir, kind, what string, targets func(context.Context, string) ([]target, error), sources ...string) (string, error) {
	ts, err := targets(ctx, dir)
	if err != nil {
		return "", err
	}
	files := []string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")}
	for _, s := range sources {
		files = append(files, filepath.Join(dir, s))
	}
	key, err := cache.FileKey(fmt.Sprintf("%+v", ts), files...)
	if err != nil {
		return "", err
	}
	return c.Entry(ctx, kind, key, func(ctx context.Context, dest string) error {
		return c.Log.Step("build "+what+" from Go modules", func() error { return runAll(ctx, c, ts, dir, dest) })
	})
}

func runAll(ctx context.Context, c *cache.Cache, ts []target, dir, dest string) error {
	for _, t := range ts {
		err := c.Log.Step("  build "+t.names(), func() error { return t.run(ctx, dir, dest) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (t target) names() string {
	if !t.isDir() {
		return filepath.Base(t.out)
	}
	var names []string
	for _, p := range t.packages {
		names = append(names, filepath.Base(p))
	}
	return strings.Join(names, ", ")
}

func kubernetesTargets(ctx context.Context, dir string) ([]target, error) {
	version, err := moduleVersion(ctx, dir, "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	cmd := "k8s.io/kubernetes/cmd/"
	return []target{
		{ldflags: kubernetesFlags(version), packages: []string{
			cmd + "kube-apiserver", cmd + "kube-controller-manager", cmd + "kube-scheduler",
			cmd + "kubelet", cmd + "kubectl", cmd + "kubeadm"}},
		{out: "etcd", ldflags: "-s -w", packages: []string{"go.etcd.io/etcd/server/v3"}},
	}, nil
}

func kubeletTarget(ctx context.Context, dir string) ([]target, error) {
	version, err := moduleVersion(ctx, dir, "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	return []target{{ldflags: kubernetesFlags(version), packages: []string{"k8s.io/kubernetes/cmd/kubelet"}}}, nil
}

func kubernetesFlags(version string) string {
	v := "k8s.io/component-base/version"
	minor := strings.Split(version, ".")[1]
	return fmt.Sprintf("-s -w -X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s -X %s.gitTreeState=clean -X %s.gitCommit=unknown -X %s.buildDate=1970-01-01T00:00:00Z",
		v, version, v, v, minor, v, v, v)
}

func runtimeTargets(ctx context.Context, dir string) ([]target, error) {
	const containerd, plugins = "github.com/containerd/containerd/v2", "github.com/containernetworking/plugins"
	cv, err := moduleVersion(ctx, dir, containerd)
	if err != nil {
		return nil, err
	}
	pv, err := moduleVersion(ctx, dir, plugins)
	if err != nil {
		return nil, err
	}
	return []target{
		{tags: "no_btrfs no_devmapper no_zfs no_aufs no_tracing",
			ldflags:  fmt.Sprintf("-s -w -X %s/version.Version=%s -X %s/version.Revision=gomod", containerd, cv, containerd),
			packages: []string{containerd + "/cmd/containerd", containerd + "/cmd/containerd-shim-runc-v2", containerd + "/cmd/ctr"}},
		{cgo: true, tags: "seccomp", ldflags: "-s -w", packages: []string{"github.com/opencontainers/runc"}},
		{out: "cni/", ldflags: fmt.Sprintf("-s -w -X %s/pkg/utils/buildversion.BuildVersion=%s", plugins, pv),
			packages: []string{plugins + "/plugins/main/bridge", plugins + "/plugins/main/loopback", plugins + "/plugins/main/ptp",
				plugins + "/plugins/ipam/host-local", plugins + "/plugins/meta/portmap"}},
		{ldflags: "-s -w", packages: []string{"github.com/google/go-containerregistry/cmd/crane"}},
	}, nil
}
