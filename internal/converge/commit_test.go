package converge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// drifted is a node whose credential others may read and whose directory of
// manifests too: both are put right in place.
func drifted(t *testing.T) *machine {
	h := settled(t)
	must(h.Chmod("/var/lib/kubelet/pki/kubelet-client-berth.pem", 0o644))
	must(h.Chown(kubeconfig, 7, 7))
	must(h.Chmod("/etc/kubernetes/manifests", 0o755))
	h.Flush()
	return h
}

// A power cut right after an apply does not give the attributes back that it
// changed in place.
func TestAttributesAreDurable(t *testing.T) {
	want := settled(t).Tree("/etc", "/var/lib/kubelet")
	h := drifted(t)
	if _, err := engine(h, &providers{}).Apply(t.Context(), sampleState(t)); err != nil {
		t.Fatal(err)
	}
	h.PowerCut(memory.LoseAll)
	h.Boot()
	if diff := cmp.Diff(want, h.Tree("/etc", "/var/lib/kubelet")); diff != "" {
		t.Error(diff)
	}
}

// Nor does it where the apply was killed and another one, which found the
// attributes right, said that all is done.
func TestAttributesAreDurableAfterAKill(t *testing.T) {
	s := scenario{"drifted attributes", drifted, func(t *testing.T) *desired.State { return sampleState(t) }, nil, false}
	want := settled(t).Tree("/etc", "/var/lib/kubelet")
	_, effects := undisturbed(t, s, 7)
	for n := 1; n <= effects; n++ {
		h := drifted(t)
		disturb(t, h, s, effect.Plan{{At: n, Kind: effect.StopAfter}})
		h.Kill()
		again(t, h, s)
		h.PowerCut(memory.LoseAll)
		h.Boot()
		if diff := cmp.Diff(want, h.Tree("/etc", "/var/lib/kubelet")); diff != "" {
			t.Errorf("killed at effect %d: %s", n, diff)
		}
	}
}
