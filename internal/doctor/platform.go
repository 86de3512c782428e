package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

func checkRoot(_ context.Context, v *visit) *finding {
	if v.UID != 0 {
		return warnf(asRoot, "this is user %d: what only root may see is unknown, and only root can make this machine a node", v.UID)
	}
	return okf("this is root")
}

func checkOS(ctx context.Context, v *visit) *finding {
	f := &finding{}
	if !slices.Contains([]string{"amd64", "arm64"}, runtime.GOARCH) {
		f.fail("take a machine of one of them", "the architecture is %s: Kubernetes is there for amd64 and arm64", runtime.GOARCH)
	}
	_, err := v.Host.Unit(ctx, "multi-user.target")
	switch {
	case errors.Is(err, host.ErrNoSystemd):
		f.fail("boot the machine with systemd", "systemd is not the service manager")
	case err != nil:
		f.unread("systemd", err)
	}
	return f.ok("%s on %s", v.distribution(), runtime.GOARCH)
}

// distribution is what os-release(5) calls it.
func (v *visit) distribution() string {
	for _, path := range []string{"/usr/lib/os-release", "/etc/os-release"} {
		text, err := v.Host.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
				return strings.Trim(strings.TrimSpace(name), `"'`)
			}
		}
	}
	return "an unnamed distribution"
}

// Kernels that Kubernetes supports, and those that it advises for cgroup v2.
var (
	oldestKernel  = [2]int{4, 19}
	advisedKernel = [2]int{5, 8}
)

func checkKernel(_ context.Context, v *visit) *finding {
	text, err := v.line("/proc/sys/kernel/osrelease")
	if errors.Is(err, host.ErrOldKernel) {
		return failf("update the machine's kernel", "%v", host.ErrOldKernel)
	}
	if err != nil {
		return unread("the kernel's version", err)
	}
	version, ok := majorMinor(text)
	switch {
	case !ok:
		return unknownf("", "the kernel calls itself %q", text)
	case slices.Compare(version[:], oldestKernel[:]) < 0:
		return failf("update the machine's kernel", "Linux %s is older than 4.19, the oldest that Kubernetes supports", text)
	case slices.Compare(version[:], advisedKernel[:]) < 0:
		return warnf("update the machine's kernel", "Linux %s is older than 5.8, which Kubernetes advises", text)
	}
	return okf("Linux %s", text)
}

// majorMinor are the first two numbers of "6.1.0-18-amd64".
func majorMinor(text string) (v [2]int, ok bool) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) < 2 || !strings.HasPrefix(text, parts[0]+"."+parts[1]) {
		return v, false
	}
	for i := range v {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

const cgroupDir = "/sys/fs/cgroup"

// needed are the controllers without which kubelet does not start.
var needed = []string{"cpu", "cpuset", "memory", "pids"}

func checkCgroups(ctx context.Context, v *visit) *finding {
	mounts, err := v.Host.Mounts(ctx)
	if err != nil {
		return unread("the table of mounts", err)
	}
	var have []string
	for _, m := range mounts {
		switch {
		case m.Type == "cgroup2" && m.Target == cgroupDir:
			return v.unified()
		case m.Type == "cgroup":
			have = append(have, m.Options...)
		}
	}
	f := &finding{}
	if missing := lacking(have, needed); len(missing) > 0 {
		return f.fail("boot with systemd.unified_cgroup_hierarchy=1", "there is no control group version 2 at %s, and version 1 lacks %s", cgroupDir, strings.Join(missing, ", "))
	}
	refuses, err := v.refusesV1()
	switch {
	case err != nil:
		return f.unknown(remedyFor(err), "control groups are of version 1, and whether kubelet takes that is not known: %v", err)
	case refuses:
		return f.fail("boot with systemd.unified_cgroup_hierarchy=1, or set failCgroupV1: false in kubelet's configuration",
			"control groups are of version 1: kubelet refuses it from 1.35 on")
	}
	return f.warn("boot with systemd.unified_cgroup_hierarchy=1", "control groups are of version 1: Kubernetes only maintains it")
}

// refusesV1 says whether the kubelet of the document will not start on version 1. One
// that is on the machine already has said so itself.
func (v *visit) refusesV1() (bool, error) {
	config, err := v.kubeletConfig()
	refuses, said := config["failCgroupV1"].(bool)
	if said || v.Config == nil || err != nil {
		return refuses, err
	}
	version, ok := majorMinor(strings.TrimPrefix(v.Config.Components.Kubernetes.Version, "v"))
	return ok && slices.Compare(version[:], []int{1, 35}) >= 0, nil
}

func (v *visit) unified() *finding {
	text, err := v.line(cgroupDir + "/cgroup.controllers")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unknownf("", "control groups are of version 2; which controllers there are is not said")
	case err != nil:
		return unread(cgroupDir, err)
	}
	if missing := lacking(strings.Fields(text), needed); len(missing) > 0 {
		return failf("take cgroup_disable= off the kernel's command line, or delegate them to this container", "control groups are of version 2 and lack %s", strings.Join(missing, ", "))
	}
	return okf("version 2 with %s", strings.Join(needed, ", "))
}

// lacking are those of the wanted that are not there.
func lacking(have, want []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(have, w) })
}

func gib(n uint64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
