package provision

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/tempdisk"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// onTempDisked is a machine whose kubelet has its data on the temporary disk.
func onTempDisked(t *testing.T) *tempDisked {
	t.Helper()
	w := newTempDisked(t, onSystemDisk)
	w.disk(nil)
	if err := OnTempDisk(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	w.ran = nil
	return w
}

// volume mounts what a pod has, and puts a file beside it.
func (w *tempDisked) volume() {
	w.t.Helper()
	const at = tempdisk.Target + "/pods/a/token"
	w.PutDir(at)
	w.Put(tempdisk.Dir+"/pods/a/file", "data", 0o600)
	if err := w.Mount(w.t.Context(), host.Mount{Source: "tmpfs", Target: at, Type: "tmpfs"}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *tempDisked) mounted(at string) string {
	w.t.Helper()
	source, err := mountedAt(w.t.Context(), w, at)
	if err != nil {
		w.t.Fatal(err)
	}
	return source
}

// gaveBack wants everything on the disk of the system, and nothing else anywhere.
func (w *tempDisked) gaveBack(when string) {
	w.t.Helper()
	if at := w.mounted(tempdisk.Target) + w.mounted(belowDir); at != "" {
		w.t.Errorf("%s: %s is mounted", when, at)
	}
	if diff := cmp.Diff(onSystemDisk, w.files(tempdisk.Target)); diff != "" {
		w.t.Errorf("%s: %s", when, diff)
	}
	for _, p := range []string{tempdisk.Dir, "/mnt/aks", tempDiskNote, belowNote, belowDir} {
		if there(w, p) {
			w.t.Errorf("%s: %s is there", when, p)
		}
	}
}

func TestOffTempDisk(t *testing.T) {
	w := onTempDisked(t)
	for _, when := range []string{"first", "again"} {
		if said, err := OffTempDisk(t.Context(), w); said != "" || err != nil {
			t.Fatalf("%s: %q, %v", when, said, err)
		}
		w.gaveBack(when)
	}
	if err := OnTempDisk(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(takenAlong, w.files(tempdisk.Dir)); diff != "" {
		t.Errorf("on the disk again: %s", diff)
	}
}

// What pods use stays mounted, and what kubelet needs at the next boot is below: what
// nothing is mounted in. Whoever uses the disk on has no keys below it.
func TestOffTempDiskInUse(t *testing.T) {
	w := onTempDisked(t)
	w.volume()
	said, err := OffTempDisk(t.Context(), w)
	if err != nil || !strings.Contains(said, "/var/lib/kubelet/pods/a/token uses /var/lib/kubelet, which stays") {
		t.Errorf("%q, %v", said, err)
	}
	if w.mounted(tempdisk.Target) == "" || w.mounted(belowDir) != "" {
		t.Error("not mounted any more")
	}
	if diff := cmp.Diff(onSystemDisk, w.below); diff != "" {
		t.Error(diff)
	}
	if err := OnTempDisk(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if len(w.below) > 0 || there(w, belowNote) || !there(w, tempDiskNote) {
		t.Errorf("left below: %v", w.below)
	}
}

func TestOffTempDiskBesideKubelet(t *testing.T) {
	w := onTempDisked(t)
	w.Put("/etc/systemd/system/"+kubelet.Unit, "[Service]\nExecStart=/opt/bin/kubelet\n", 0o644)
	w.Put("/opt/bin/kubelet", "", 0o755)
	if err := errors.Join(w.DaemonReload(t.Context()), w.StartUnit(t.Context(), kubelet.Unit)); err != nil {
		t.Fatal(err)
	}
	if said, err := OffTempDisk(t.Context(), w); err != nil || !strings.Contains(said, "kubelet.service uses") || w.mounted(tempdisk.Target) == "" {
		t.Errorf("%q, %v", said, err)
	}
}

// A machine that goes down has its data where they are, and what others mounted stays.
func TestOffTempDiskLeavesAlone(t *testing.T) {
	down := onTempDisked(t)
	down.state = "stopping"
	other := newTempDisked(t, onSystemDisk)
	other.disk(nil)
	if err := other.Mount(t.Context(), host.Mount{Source: "/dev/sdc", Target: tempdisk.Target, Type: "tmpfs"}); err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]*tempDisked{"goes down": down, "another disk": other, "no disk": newTempDisked(t, onSystemDisk)} {
		before := w.mounted(tempdisk.Target)
		if said, err := OffTempDisk(t.Context(), w); said != "" || err != nil || len(w.ran) > 0 || w.mounted(tempdisk.Target) != before {
			t.Errorf("%s: %q, %v, ran %v", name, said, err, w.ran)
		}
	}
}

// Killed before any of its programs, it loses nothing, and the next call completes it.
func TestOffTempDiskIsCompleted(t *testing.T) {
	for failing := range 4 {
		w := onTempDisked(t)
		w.failing = failing
		_, err := OffTempDisk(t.Context(), w)
		if e, ok := errors.AsType[*exitcode.Error](err); !ok || e.Number != exitcode.Kubelet || e.Remedy == "" {
			t.Fatalf("program %d, %v: %v", failing, w.ran, err)
		}
		if w.mounted(belowDir) != "" {
			t.Errorf("after program %d failed: %s is mounted", failing, belowDir)
		}
		if w.mounted(tempdisk.Target) == "" { // all that is left to do is to clear the disk
			if diff := cmp.Diff(onSystemDisk, w.files(tempdisk.Target)); diff != "" {
				t.Errorf("after program %d failed: %s", failing, diff)
			}
			continue
		}
		if said, err := OffTempDisk(t.Context(), w); said != "" || err != nil {
			t.Fatalf("%q, %v", said, err)
		}
		w.gaveBack("completed")
	}
}
