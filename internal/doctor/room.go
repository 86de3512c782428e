package doctor

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/unitname"
)

func checkSwap(_ context.Context, v *visit) *finding {
	text, err := v.Host.ReadFile("/proc/swaps")
	if err != nil {
		return unread("the list of swap areas", err)
	}
	var areas []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] != "Filename" {
			areas = append(areas, f[0])
		}
	}
	config, err := v.kubeletConfig()
	refuses, said := config["failSwapOn"].(bool)
	switch {
	case len(areas) == 0:
		return okf("there is none")
	case said && !refuses:
		return okf("%s is in use, and kubelet takes it", strings.Join(areas, ", "))
	case len(areas) > 0 && v.when == Preflight && v.takesOff(areas):
		return okf("%s is in use, and berth takes it out of use for as long as the machine is a node", strings.Join(areas, ", "))
	case err != nil:
		return unknownf(remedyFor(err), "%s is in use, and whether kubelet takes that is not known: %v", strings.Join(areas, ", "), err)
	}
	return failf("take what uses it out of use for good (systemctl mask --now with the unit of systemctl list-units --type swap), or set failSwapOn: false in kubelet's configuration",
		"%s is in use: kubelet refuses to start beside it", strings.Join(areas, ", "))
}

// takesOff says whether the document's state has all areas out of use.
func (v *visit) takesOff(areas []string) bool {
	st, err := v.state()
	return err == nil && !slices.ContainsFunc(areas, func(area string) bool {
		u, ok := st.Lookup(desired.UnitID(unitname.OfPath(area) + ".swap")).(*desired.Unit)
		return !ok || u.Activation != desired.Stopped
	})
}

const (
	leastDisk   = 2 << 30
	advisedDisk = 8 << 30
	leastFiles  = 100_000
	leastMemory = 512 << 20
	niceMemory  = 1 << 30
)

// diskDirs hold what a node needs room for: pods, images, programs. kubelet evicts by
// the first two.
var diskDirs = []struct{ path, signal string }{
	{"/var/lib/kubelet", "nodefs.available"},
	{"/var/lib/containerd", "imagefs.available"},
	{"/usr/local", ""},
}

// evicts is what its configuration says of that, where that can't be known.
const evicts = "what kubelet evicts pods at"

func checkDisk(_ context.Context, v *visit) *finding {
	f := &finding{}
	config, err := v.kubeletConfig()
	if err != nil {
		f.unread(evicts, err)
	}
	for _, d := range diskDirs {
		s, err := v.Survey.Space(d.path)
		if err != nil {
			f.unread("the room below "+d.path, err)
			continue
		}
		least := max(leastDisk, threshold(config, d.signal, s.Total))
		const remedy = "make room, or give it a disk of its own"
		switch {
		case s.Free < least:
			f.fail(remedy, "%s: %s of %s are free, and at least %s are needed", d.path, gib(s.Free), gib(s.Total), gib(least))
		case s.Free < advisedDisk:
			f.warn(remedy, "%s: %s of %s are free", d.path, gib(s.Free), gib(s.Total))
		case s.TotalFiles > 0 && s.FreeFiles < leastFiles:
			f.warn(remedy, "%s: %d of %d inodes are free", d.path, s.FreeFiles, s.TotalFiles)
		default:
			f.ok("%s: %s free", d.path, gib(s.Free))
		}
	}
	return f
}

// threshold is what kubelet evicts pods below, of a whole; 0 where it has no threshold. Source:
// parseThresholdStatement in pkg/kubelet/eviction/helpers.go of Kubernetes.
func threshold(config map[string]any, signal string, whole uint64) uint64 {
	hard, _ := config["evictionHard"].(map[string]any)
	text, _ := hard[signal].(string)
	if text == "0%" || text == "100%" {
		return 0
	}
	if share, ok := strings.CutSuffix(text, "%"); ok {
		if n, err := strconv.ParseFloat(share, 64); err == nil && n >= 0 && n <= 100 {
			return uint64(n / 100 * float64(whole))
		}
		return 0
	}
	if q, err := resource.ParseQuantity(text); err == nil && q.Value() > 0 {
		return uint64(q.Value())
	}
	return 0
}

func checkMemory(_ context.Context, v *visit) *finding {
	text, err := v.Host.ReadFile("/proc/meminfo")
	if err != nil {
		return unread("the machine's memory", err)
	}
	total, free := meminfo(string(text), "MemTotal"), meminfo(string(text), "MemAvailable")
	f := &finding{}
	config, err := v.kubeletConfig()
	if err != nil {
		f.unread(evicts, err)
	}
	const remedy = "give the machine more memory"
	switch {
	case total == 0:
		return f.unknown("", "/proc/meminfo does not say how much there is")
	case total < leastMemory:
		return f.fail(remedy, "the machine has %s: kubelet, containerd and the system need 0.5 GiB", gib(total))
	case free > 0 && free < threshold(config, "memory.available", total):
		return f.fail("end what needs it, or give the machine more", "%s of %s are available: kubelet would evict pods at once", gib(free), gib(total))
	case total < niceMemory:
		return f.warn(remedy, "the machine has %s: that leaves little for pods", gib(total))
	}
	return f.ok("%s, %s available", gib(total), gib(free))
}

// meminfo is a value of /proc/meminfo in bytes; 0 if it has none.
func meminfo(text, name string) uint64 {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != name+":" {
			continue
		}
		n, err := strconv.ParseUint(f[1], 10, 54)
		if err != nil {
			return 0
		}
		return n << 10
	}
	return 0
}
