package faults_test

import (
	"maps"
	"strings"
	"testing"

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
		"image that serves": {serving(prebaked), full.with(t, addSwap, bridged), []string{"reload ssh.service", "stop kubelet.service", "restart containerd.service"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenario{name, copied(applied(image.machine, image.config)), &configuration{}, image.stops}
			s.undisturbed(t)
			before, ends, left := onDisk(image.machine()), 0, machines{}
			if d := differences(before, onDisk(s.after(t))); len(d) > 0 {
				t.Fatalf("after the end of the configuration: %q", d)
			}
			for stop := range s.stops(t) {
				for _, seed := range append(cutsAt(stop.N), killed) {
					ends++
					h := furnished(stop.machine)
					if seed == killed {
						h.Kill()
					} else {
						h.PowerCut(seed)
					}
					if left.has(h) {
						continue
					}
					if seed != killed {
						h.Boot()
					}
					s.again(t, h)
					if d := differences(before, onDisk(h)); len(d) > 0 {
						t.Fatalf("cut off at effect %v, seed %d: %q", stop.Effect, seed, d)
					}
				}
			}
			t.Logf("%d ends, %d machines", ends, len(left))
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
