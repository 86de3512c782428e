package datadisk

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

// mountedWorld has the disk mounted, and something mounted in it.
func mountedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(map[string]*disk{"/dev/vdb": {size: size}})
	if err := Ensure(t.Context(), w, size); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{Dir + "/pods/a", Dir + "/pods/a/volume", "/var/lib/kubelet-other"} {
		w.mounts = append(w.mounts, host.Mount{Source: "tmpfs", Target: at, Type: "tmpfs"})
	}
	return w
}

func TestReleases(t *testing.T) {
	w := mountedWorld(t)
	for _, want := range []string{"/dev/vdb", ""} {
		if device, err := Release(t.Context(), w); err != nil || device != want {
			t.Errorf("%q, %v, want %q", device, err, want)
		}
		if len(w.mounts) != 1 || w.mounts[0].Target != "/var/lib/kubelet-other" || w.disks["/dev/vdb"].label != Label {
			t.Errorf("%+v, label %q", w.mounts, w.disks["/dev/vdb"].label)
		}
	}
}

// TestReleasesNothingOfOthers: what a kubelet works with stays, and so does a file
// system that others mounted there.
func TestReleasesNothingOfOthers(t *testing.T) {
	w := mountedWorld(t)
	for _, state := range []string{"active", "activating", "reloading", "deactivating"} {
		_, err := Release(t.Context(), withKubelet{w, state})
		if _, ok := errors.AsType[*RunningError](err); !ok || w.at() != "/dev/vdb" {
			t.Errorf("%s: %v, at %q", state, err, w.at())
		}
	}
	if device, err := Release(t.Context(), withKubelet{w, "failed"}); err != nil || device != "/dev/vdb" {
		t.Errorf("%q, %v", device, err)
	}
	other := newWorld(map[string]*disk{"/dev/vdb": {size: size, fs: fsType, label: "OTHER"}})
	other.mounts = []host.Mount{{Source: "/dev/vdb", Target: Dir, Type: fsType}}
	if device, err := Release(t.Context(), other); err != nil || device != "" || other.at() != "/dev/vdb" {
		t.Errorf("%q, %v, at %q", device, err, other.at())
	}
}

// withKubelet is a machine whose kubelet is in a state.
type withKubelet struct {
	*world
	state string
}

// Unit implements host.Units.
func (k withKubelet) Unit(context.Context, string) (host.UnitStatus, error) {
	return host.UnitStatus{ActiveState: k.state}, nil
}

// TestReleasesOnlyItsOwn: a disk with the label that was mounted already, and disks
// that can't be told from each other, are of no concern where the agent mounted none.
func TestReleasesOnlyItsOwn(t *testing.T) {
	w := newWorld(map[string]*disk{"/dev/vdb": {size: size, fs: fsType, label: Label}})
	w.mounts = []host.Mount{{Source: "/dev/vdb", Target: Dir, Type: fsType}}
	for _, also := range []string{"", "/dev/vdc"} {
		if also != "" {
			w.attach(also, &disk{size: size, fs: fsType, label: Label})
		}
		if err := Ensure(t.Context(), w, size); err != nil {
			t.Fatal(err)
		}
		if device, err := Release(t.Context(), w); err != nil || device != "" || w.at() != "/dev/vdb" {
			t.Errorf("%q, %v, at %q", device, err, w.at())
		}
	}
}

// TestForgetsAtTheEnd: the agent unmounts a disk once; mounted again by others, it is
// theirs.
func TestForgetsAtTheEnd(t *testing.T) {
	w := mountedWorld(t)
	before := slices.Clone(w.mounts)
	if _, err := Release(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	w.mounts = before
	if device, err := Release(t.Context(), w); err != nil || device != "" || w.at() != "/dev/vdb" {
		t.Errorf("%q, %v, at %q", device, err, w.at())
	}
}
