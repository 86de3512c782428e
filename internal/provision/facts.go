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
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/credentialprovider"
	"github.com/berth-dev/berth/internal/component/proxy"
	"github.com/berth-dev/berth/internal/component/resolver"
	"github.com/berth-dev/berth/internal/component/ssh"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/kind/block"
	"github.com/berth-dev/berth/internal/host"
)

// FactsSource is where facts come from besides the file tree.
type FactsSource struct {
	// Version says of which version a program is; "" where it can't be known.
	Version func(ctx context.Context, h host.Host, path string) (string, error)
	// Cloud is what the cloud says of the machine; nil asks nobody.
	Cloud func(ctx context.Context) Cloud
	// Asked is what Ask returned, where that was called before; else nil.
	Asked func() (Cloud, error)
	// Program is where the program that runs is; "" leaves Facts.Program empty.
	Program string
	// Images are those of the machine's bundles; nil is none.
	Images func(h host.FS) ([]component.BundledImage, error)
	// Offline: the host is a root directory. Its kernel and addresses are not
	// those of this machine.
	Offline bool
}

var (
	runcPaths      = []string{"/usr/bin/runc", "/usr/sbin/runc", "/usr/local/bin/runc", "/usr/local/sbin/runc"}
	kubectlPaths   = []string{"/opt/bin/kubectl", "/usr/local/bin/kubectl", "/usr/bin/kubectl"}
	sshPaths       = []string{"/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"}
	iptablesPaths  = []string{"/usr/sbin/iptables", "/sbin/iptables"}
	vendorUnitDirs = []string{"/usr/lib/systemd/system", "/usr/local/lib/systemd/system", "/lib/systemd/system"}
)

// Gather collects what translation may depend on. It reads only, and what the
// machine does not tell stays empty. The cloud is asked first and its answer gathered
// last: nobody else may answer in that time. The error is about the bundles, or a panic.
func Gather(ctx context.Context, h host.Host, s FactsSource) (component.Facts, error) {
	answer := s.Asked
	if answer == nil {
		answer = s.Ask(ctx)
	}
	starts := containerdStarts(h)
	f := component.Facts{
		ContainerdStarts: starts, ContainerdPath: firstFile(h, containerdPaths(starts)),
		RuncPath:    firstFile(h, runcPaths),
		KubectlPath: firstFile(h, kubectlPaths),
		VendorUnits: vendorUnits(h),

		VersionedPrograms: versionedPrograms(h), Packages: packages(h),

		SSHServer: firstThere(h, sshPaths), SSHIncludes: sshIncludes(h), IPTables: firstThere(h, iptablesPaths),
		Apt: there(h, proxy.AptDir), Ubuntu: ubuntu(h),
	}
	if f.ContainerdPath != "" {
		// An unknown version is a fact, too: translation decides what it means.
		f.ContainerdVersion, _ = s.Version(ctx, h, f.ContainerdPath)
	}
	f.CNIConfigured, f.Program, f.ContainerdConfig = cniConfigured(h), s.ownProgram(h), containerdConfig(h)
	f.ContainerdFiles = containerdFiles(h)
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
	f.ResourceDisk, f.ResourceDiskBytes = resourceDisk(ctx, h)
	f.SwapUnits = swapUnits(ctx, h)
	cloud, err := answer()
	f.NodeIP, f.RotationOff = cloud.Address, cloud.RotationOff
	return f, err
}

// Ask begins to ask the cloud, where that is wanted; answer waits for it.
// Who knows early that Gather will be called asks before.
func (s FactsSource) Ask(ctx context.Context) (answer func() (Cloud, error)) {
	if s.Cloud == nil || s.Offline {
		return func() (Cloud, error) { return Cloud{}, nil }
	}
	var cloud Cloud
	done := make(chan error, 1)
	go func() { done <- converge.Safely(func() error { cloud = s.Cloud(ctx); return nil }) }()
	return sync.OnceValues(func() (Cloud, error) {
		err := <-done
		return cloud, err
	})
}

// ubuntu is the code name of the release; "" for another distribution.
func ubuntu(h host.FS) string {
	b, err := h.ReadFile("/etc/os-release")
	if err != nil {
		return ""
	}
	said := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		said[name] = strings.Trim(value, `"'`)
	}
	if said["ID"] != "ubuntu" {
		return ""
	}
	return said["VERSION_CODENAME"]
}

func cniConfigured(h host.FS) bool {
	names, err := h.ReadDir(cni.ConfDir)
	return err == nil && slices.ContainsFunc(names, func(n string) bool {
		return slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(n))
	})
}

// containerdConfig is the configuration that others wrote, or berth for another
// contract than the one that changes it.
func containerdConfig(h host.FS) string {
	b, err := h.ReadFile(containerd.ConfigFile)
	if err != nil || strings.HasPrefix(string(b), containerd.ChangesHeader) {
		return ""
	}
	return block.Without(string(b), containerd.ImportBlock)
}

func containerdFiles(h host.FS) map[string]string {
	names, _ := h.ReadDir(containerd.HostsDir) // most machines have none
	all := []string{containerd.PathDropIn}
	for _, name := range names {
		all = append(all, containerd.HostsFile(name))
	}
	var out map[string]string
	for _, p := range all {
		text, err := h.ReadFile(p)
		if err != nil {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[p] = string(text)
	}
	return out
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

// firstThere is the first of the paths that leads to a file, as it is spelled.
func firstThere(h host.FS, paths []string) string {
	for _, p := range paths {
		if resolve(h, p) != "" {
			return p
		}
	}
	return ""
}

// sshIncludes reads the server's configuration as far as its first word (sshd_config(5): a
// keyword may have its value after blanks or a sign of equality, in quotes).
func sshIncludes(h host.FS) bool {
	text, err := h.ReadFile(ssh.Config)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n=\"", r) })
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		return strings.EqualFold(words[0], "Include") && slices.Contains(words[1:], ssh.DropInDir+"/*.conf")
	}
	return false
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

func packages(h host.FS) []string {
	var all []string
	for _, program := range []string{"kubelet", "kubectl", credentialprovider.Program} {
		dir := path.Join("/opt", program, "downloads")
		names, err := h.ReadDir(dir)
		if err != nil {
			continue // most images have none
		}
		for _, name := range names {
			all = append(all, path.Join(dir, name))
		}
	}
	slices.Sort(all)
	return all
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
