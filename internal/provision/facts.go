package provision

import (
	"cmp"
	"context"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/credentialprovider"
	"github.com/berth-dev/berth/internal/component/hostsagent"
	"github.com/berth-dev/berth/internal/component/imageunits"
	"github.com/berth-dev/berth/internal/component/proxy"
	"github.com/berth-dev/berth/internal/component/resolver"
	"github.com/berth-dev/berth/internal/component/searchdomain"
	"github.com/berth-dev/berth/internal/component/ssh"
	"github.com/berth-dev/berth/internal/component/streaming"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/kind/block"
	"github.com/berth-dev/berth/internal/host"
)

// FactsSource is where facts come from besides the file tree.
type FactsSource struct {
	// Version says of which version a program is; "" where it can't be known.
	Version func(ctx context.Context, h host.Host, path string) (string, error)
	// Cloud is what the cloud says of the machine; nil asks nobody.
	Cloud func(ctx context.Context) azure.Cloud
	// Asked is what Ask returned, where that was called before; else nil.
	Asked func() (azure.Cloud, error)
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
// last: nobody else may answer in that time. The error is about the bundles, a panic, or why
// ctx ended: what was asked after that is missing, and a document would be blamed for it.
func Gather(ctx context.Context, h host.Host, s FactsSource) (component.Facts, error) {
	answer := s.Asked
	if answer == nil {
		answer = s.Ask(ctx)
	}
	f := GatherForChanges(ctx, h, s)
	f.RuncPath, f.KubectlPath, f.VendorUnits = firstFile(h, runcPaths), firstFile(h, kubectlPaths), vendorUnits(h)
	f.VersionedPrograms, f.Packages = versionedPrograms(h), packages(h)
	f.ImageUnits, f.StreamingSetup = imageUnits(h), firstExecutable(h, streaming.Programs())
	f.SSHServer, f.SSHIncludes, f.IPTables = firstThere(h, sshPaths), sshIncludes(h), firstThere(h, iptablesPaths)
	f.Apt, f.CNIConfigured = there(h, proxy.AptDir), cniConfigured(h)
	f.Realms, f.Expiring = realms(h), expiring(h)
	nameDistribution(h, &f)
	var err error
	if s.Images != nil {
		if f.Images, err = s.Images(h); err != nil {
			return f, err
		}
	}
	if s.Offline {
		f.IPv6 = true
		return f, context.Cause(ctx)
	}
	f.Kernel = line(h, "/proc/sys/kernel/osrelease")
	f.IPv6, f.Resolved = there(h, "/proc/sys/net/ipv6"), there(h, resolver.List)
	f.ResourceDisk, f.ResourceDiskBytes = resourceDisk(ctx, h)
	f.SwapUnits = swapUnits(ctx, h)
	cloud, err := answer()
	f.NodeIP, f.RotationOff, f.FromPackages = cloud.Address, cloud.RotationOff, cloud.FromPackages
	f.SkipGPU, f.ManageGPU = cloud.SkipGPU, cloud.ManageGPU
	if cloud.Interfaces != "" {
		f.Interfaces = strings.Split(cloud.Interfaces, ",")
	}
	if f.APIServer = cloud.APIServer; !f.APIServer.IsValid() {
		f.APIServer = apiServerBefore(h)
	}
	return f, cmp.Or(err, context.Cause(ctx))
}

// GatherForChanges collects what the translation of an OperatingSystemConfig may depend
// on: it says itself what is to be on the machine, but for the host's name, containerd and
// the program that applies it. An agent asks for it at each document.
func GatherForChanges(ctx context.Context, h host.Host, s FactsSource) component.Facts {
	starts := containerdStarts(h)
	f := component.Facts{
		ContainerdStarts: starts, ContainerdPath: firstFile(h, containerdPaths(starts)),
		ContainerdConfig: containerdConfig(h), ContainerdFiles: containerdFiles(h),
		Program: s.ownProgram(h),
	}
	if f.ContainerdPath != "" {
		// An unknown version is a fact, too: translation decides what it means.
		f.ContainerdVersion, _ = s.Version(ctx, h, f.ContainerdPath)
	}
	if f.Hostname = line(h, "/proc/sys/kernel/hostname"); s.Offline {
		f.Hostname = cmp.Or(line(h, "/etc/hostname"), "localhost")
	}
	return f
}

// Ask begins to ask the cloud, where that is wanted; answer waits for it.
// Who knows early that Gather will be called asks before.
func (s FactsSource) Ask(ctx context.Context) (answer func() (azure.Cloud, error)) {
	if s.Cloud == nil || s.Offline {
		return func() (azure.Cloud, error) { return azure.Cloud{}, nil }
	}
	var cloud azure.Cloud
	done := make(chan error, 1)
	go func() { done <- converge.Safely(func() error { cloud = s.Cloud(ctx); return nil }) }()
	return sync.OnceValues(func() (azure.Cloud, error) {
		err := <-done
		return cloud, err
	})
}

// nameDistribution reads os-release(5).
func nameDistribution(h host.FS, f *component.Facts) {
	b, err := h.ReadFile("/etc/os-release")
	if err != nil {
		return
	}
	said := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		said[name] = strings.Trim(value, `"'`)
	}
	f.Distribution, f.Release, f.Variant = strings.ToLower(said["ID"]), strings.ToLower(said["VERSION_ID"]), strings.ToLower(said["VARIANT_ID"])
	if said["ID"] == "ubuntu" {
		f.Ubuntu = said["VERSION_CODENAME"]
	}
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

// apiServerBefore is the address that an earlier run or the agent wrote down.
func apiServerBefore(h host.FS) netip.Addr {
	b, err := h.ReadFile(hostsagent.File)
	if err != nil {
		return netip.Addr{}
	}
	return hostsagent.Address(block.Lines(string(b), hostsagent.Block))
}

func realms(h host.FS) []string {
	b, err := h.ReadFile(searchdomain.Keytab)
	if err != nil {
		return nil // most machines have none
	}
	return searchdomain.Realms(b)
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

// firstExecutable is the first of the paths that leads to a file that can be executed, as
// it is spelled.
func firstExecutable(h host.FS, paths []string) string {
	for _, p := range paths {
		if info, err := h.Lstat(cmp.Or(resolve(h, p), p)); err == nil && info.Mode.IsRegular() && info.Mode.Perm()&0o111 != 0 {
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

// imageUnits are found in the administrator's directory, too, where images have some. Who
// masked one there does not want it.
func imageUnits(h host.FS) []string {
	var out []string
	for _, name := range imageunits.Names() {
		for _, dir := range append([]string{"/etc/systemd/system"}, vendorUnitDirs...) {
			at := path.Join(dir, name)
			if _, err := h.Lstat(at); err != nil {
				continue
			}
			if info, err := h.Lstat(cmp.Or(resolve(h, at), at)); err == nil && info.Mode.IsRegular() {
				out = append(out, name)
			}
			break
		}
	}
	return out
}

// Hostname is the name that kubelet registers without --hostname-override: the
// kernel's, in lower case.
func Hostname(h host.FS) string { return strings.ToLower(line(h, "/proc/sys/kernel/hostname")) }
