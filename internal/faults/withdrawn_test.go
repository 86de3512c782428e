package faults_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// Killed or cut off at any effect of its end, a configuration leaves the machine
// as its image was: what was replaced is back, programs included.
func TestWithdrawnAnywhere(t *testing.T) {
	full := configure(t, "full.json")
	for name, image := range map[string]struct {
		machine func() *memory.Host
		config  *configuration
		stops   []string
	}{
		"prebaked image":    {prebaked, full, []string{"stop kubelet.service", "restart containerd.service"}},
		"shared image":      {sharing(outdated, full.with(t, download)), full.with(t, download), []string{"stop kubelet.service", "stop containerd.service"}},
		"image of packages": {packed, full.with(t, unpack), []string{"stop kubelet.service", "stop containerd.service"}},
		"outdated image":    {outdated, full.with(t, download), []string{"stop kubelet.service", "stop containerd.service"}},
		"image with swap":   {prebaked, full.with(t, addSwap), []string{"stop kubelet.service", "restart containerd.service"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenario{name, copied(applied(image.machine, image.config)), &configuration{}, image.stops}
			want, before, ends := s.undisturbed(t), onDisk(image.machine()), 0
			if d := differences(before, onDisk(s.after(t))); len(d) > 0 {
				t.Fatalf("after the end of the configuration: %q", d)
			}
			for n := 1; n <= len(want.effects); n += stride {
				for _, seed := range append(cutsAt(n), killed) {
					h := s.machine()
					s.disturb(t, h, effect.Plan{{At: n, Kind: effect.StopAfter}})
					if seed == killed {
						h.Kill()
					} else {
						h.PowerCut(seed)
						h.Boot()
					}
					s.again(t, h)
					if d := differences(before, onDisk(h)); len(d) > 0 {
						t.Fatalf("cut off at effect %v, seed %d: %q", want.effects[n-1], seed, d)
					}
					ends++
				}
			}
			t.Logf("%d effects, %d ends", len(want.effects), ends)
		})
	}
}

// killed is a process that dies where the machine goes on.
const killed = ^uint64(1)

// onDisk is the tree without berth's own state, what the kernel shows and the
// images, which are the runtime's to remove.
func onDisk(h *memory.Host) map[string]string {
	tree := foreign(h)
	maps.DeleteFunc(tree, func(p, _ string) bool {
		return p == imageFile || strings.HasPrefix(p, "/proc") || strings.HasPrefix(p, "/sys") || strings.HasPrefix(p, "/run") || strings.HasPrefix(p, "/cluster")
	})
	return tree
}

// after is the machine after an undisturbed run.
func (s scenario) after(t *testing.T) *memory.Host {
	t.Helper()
	h := s.machine()
	s.again(t, h)
	return h
}
