package provision

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/resolver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// FactsSource is where facts come from besides the file tree.
type FactsSource struct {
	// Version says of which version a program is; "" where it can't be known.
	Version func(ctx context.Context, h host.Host, path string) (string, error)
	// Address is the node's address; nil leaves it to kubelet.
	Address func(ctx context.Context) string
	// Asked is what Ask returned, where that was called before; else nil.
	Asked func() (string, error)
	// Images are those of the machine's bundles; nil is none.
	Images func(h host.FS) ([]component.BundledImage, error)
	// Offline: the host is a root directory. Its kernel and addresses are not
	// those of this machine.
	Offline bool
}

var (
	containerdPaths = []string{"/usr/bin/containerd", "/usr/local/bin/containerd"}
	runcPaths       = []string{"/usr/bin/runc", "/usr/sbin/runc", "/usr/local/bin/runc", "/usr/local/sbin/runc"}
	kubectlPaths    = []string{"/opt/bin/kubectl", "/usr/local/bin/kubectl", "/usr/bin/kubectl"}
	vendorUnitDirs  = []string{"/usr/lib/systemd/system", "/usr/local/lib/systemd/system", "/lib/systemd/system"}
)

// Gather collects what translation may depend on. It reads only, and what the
// machine does not tell stays empty. The address is asked for first and gathered
// last: nobody else may answer in that time. The error is about the bundles, or a panic.
func Gather(ctx context.Context, h host.Host, s FactsSource) (component.Facts, error) {
	address := s.Asked
	if address == nil {
		address = s.Ask(ctx)
	}
	f := component.Facts{
		ContainerdPath: firstFile(h, containerdPaths),
		RuncPath:       firstFile(h, runcPaths),
		KubectlPath:    firstFile(h, kubectlPaths),
		VendorUnits:    vendorUnits(h),

		VersionedPrograms: versionedPrograms(h),
	}
	if f.ContainerdPath != "" {
		// An unknown version is a fact, too: translation decides what it means.
		f.ContainerdVersion, _ = s.Version(ctx, h, f.ContainerdPath)
	}
	f.CNIConfigured = cniConfigured(h)
	var err error
	if s.Images != nil {
		if f.Images, err = s.Images(h); err != nil {
			return f, err
		}
	}
	if s.Offline {
		f.Hostname, f.IPv6 = cmp.Or(line(h, "/etc/hostname"), "localhost"), true
		return f, nil
	}
	f.Hostname = line(h, "/proc/sys/kernel/hostname")
	f.IPv6, f.Resolved = there(h, "/proc/sys/net/ipv6"), there(h, resolver.List)
	f.NodeIP, err = address()
	return f, err
}

// Ask begins to ask for the address, where that is wanted; answer waits for it.
// Who knows early that Gather will be called asks before.
func (s FactsSource) Ask(ctx context.Context) (answer func() (string, error)) {
	if s.Address == nil || s.Offline {
		return func() (string, error) { return "", nil }
	}
	var address string
	done := make(chan error, 1)
	go func() { done <- converge.Safely(func() error { address = s.Address(ctx); return nil }) }()
	return sync.OnceValues(func() (string, error) {
		err := <-done
		return address, err
	})
}

func cniConfigured(h host.FS) bool {
	names, err := h.ReadDir(cni.ConfDir)
	return err == nil && slices.ContainsFunc(names, func(n string) bool {
		return slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(n))
	})
}

func line(h host.FS, p string) string {
	b, err := h.ReadFile(p)
	if err != nil {
		return ""
	}
	text, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(text)
}

// firstFile is the first of the paths that leads to a file, links resolved.
func firstFile(h host.FS, paths []string) string {
	for _, p := range paths {
		if f := resolve(h, p); f != "" {
			return f
		}
	}
	return ""
}

// maxLinks is how many links in a row are followed, as many as the kernel does.
const maxLinks = 40

// resolve follows the links at a path's end; "" where they lead to no file.
func resolve(h host.FS, p string) string {
	for range maxLinks {
		info, err := h.Lstat(p)
		switch {
		case err != nil:
			return ""
		case info.Mode.Type() != fs.ModeSymlink:
			return p
		}
		target, err := h.Readlink(p)
		if err != nil {
			return ""
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(p), target)
		}
		p = path.Clean(target)
	}
	return ""
}

// versionedPrograms are what images put beside the programs that run.
func versionedPrograms(h host.FS) []string {
	names, err := h.ReadDir(path.Dir(binaries.Kubelet))
	if err != nil {
		return nil
	}
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return !strings.HasPrefix(n, "kubelet-") && !strings.HasPrefix(n, "kubectl-")
	})
	slices.Sort(names)
	return names
}

func vendorUnits(h host.FS) []string {
	var out []string
	for _, dir := range vendorUnitDirs {
		names, err := h.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, n := range names {
			if path.Ext(n) != ".wants" && path.Ext(n) != ".d" {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Hostname is the name that kubelet registers without --hostname-override: the
// kernel's, in lower case.
func Hostname(h host.FS) string { return strings.ToLower(line(h, "/proc/sys/kernel/hostname")) }
