package provision

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/tempdisk"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// tempDisked is a machine with a temporary disk, whose programs do what those of an image
// do; the one whose turn is failing ends before it has done anything.
type tempDisked struct {
	*memory.Host
	t       *testing.T
	ran     []string
	failing int
	// below is what the disk of the system has below the mount, state what systemctl says
	// of the system.
	below map[string]string
	state string
}

func newTempDisked(t *testing.T, files map[string]string) *tempDisked {
	t.Helper()
	w := &tempDisked{Host: memory.New(), t: t, failing: -1, below: map[string]string{}, state: "running"}
	w.PutDir(tempdisk.Target)
	for p, text := range files {
		w.Put(p, text, 0o600)
	}
	for name, do := range map[string]func(args []string) error{"rm": w.rm, "cp": w.cp, "sync": func([]string) error { return nil }, "mount": w.bind} {
		w.Program("/usr/bin/"+name, func(c host.Command) host.Output {
			w.ran = append(w.ran, name)
			if len(w.ran)-1 == w.failing {
				return host.Output{ExitCode: 1, Stderr: []byte(name + ": killed")}
			}
			if err := do(c.Args); err != nil {
				return host.Output{ExitCode: 1, Stderr: []byte(err.Error())}
			}
			return host.Output{}
		})
	}
	w.Program("/usr/bin/systemctl", func(host.Command) host.Output { return host.Output{Stdout: []byte(w.state + "\n"), ExitCode: 1} })
	return w
}

// disk mounts the temporary disk with what is on it.
func (w *tempDisked) disk(files map[string]string) {
	w.t.Helper()
	w.PutDir(tempdisk.Disk)
	if err := w.Mount(w.t.Context(), host.Mount{Source: "/dev/sdb1", Target: tempdisk.Disk, Type: "tmpfs"}); err != nil {
		w.t.Fatal(err)
	}
	for p, text := range files {
		w.Put(p, text, 0o600)
	}
}

func (w *tempDisked) rm(args []string) error {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			if err := removeTree(w.Host, a); err != nil {
				return err
			}
			gone := strings.Replace(a, belowDir+"/kubelet", tempdisk.Target, 1)
			maps.DeleteFunc(w.below, func(p, _ string) bool { return p == gone || strings.HasPrefix(p, gone+"/") })
		}
	}
	return nil
}

func removeTree(h host.FS, p string) error {
	info, err := h.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode.IsDir() {
		names, err := h.ReadDir(p)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := removeTree(h, path.Join(p, n)); err != nil {
				return err
			}
		}
	}
	return errors.Join(err, h.Remove(p))
}

// cp copies trees, and what is in a directory whose name ends in "/.".
func (w *tempDisked) cp(args []string) error {
	to := args[len(args)-1]
	for _, from := range args[:len(args)-1] {
		if strings.HasPrefix(from, "-") {
			continue
		}
		root, contents := strings.CutSuffix(from, "/.")
		if !contents {
			root = path.Dir(from)
		}
		for p, text := range w.files(root) {
			if contents || p == from || strings.HasPrefix(p, from+"/") {
				w.copied(to+strings.TrimPrefix(p, root), text)
			}
		}
	}
	return nil
}

func (w *tempDisked) copied(p, text string) {
	w.Put(p, text, 0o600)
	if name, ok := strings.CutPrefix(p, belowDir+"/kubelet"); ok {
		w.below[tempdisk.Target+name] = text
	}
}

// bind stands in for what a machine in memory can't do: what is below Dir is what a
// reader of Target would see, and at belowDir is what Unmount shows.
func (w *tempDisked) bind(args []string) error {
	at := args[len(args)-1]
	want := []string{"--bind", tempdisk.Dir, tempdisk.Target}
	if at == belowDir {
		want = []string{"--bind", "--make-private", "/var/lib", belowDir}
	}
	if diff := cmp.Diff(want, args); diff != "" {
		w.t.Error(diff)
	}
	if err := w.Mount(w.t.Context(), host.Mount{Source: "/dev/sdb1", Target: at, Type: "tmpfs"}); err != nil || at != belowDir {
		return err
	}
	w.PutDir(belowDir + "/kubelet")
	for p, text := range w.below {
		w.Put(strings.Replace(p, tempdisk.Target, belowDir+"/kubelet", 1), text, 0o600)
	}
	return nil
}

// Unmount shows what was copied below.
func (w *tempDisked) Unmount(ctx context.Context, target string) error {
	err := w.Host.Unmount(ctx, target)
	if err == nil && target == tempdisk.Target {
		for p, text := range w.below {
			w.Put(p, text, 0o600)
		}
	}
	return err
}

func (w *tempDisked) files(dir string) map[string]string {
	out := map[string]string{}
	names, err := w.ReadDir(dir)
	if err != nil {
		return out
	}
	for _, n := range names {
		p := path.Join(dir, n)
		if info, err := w.Lstat(p); err == nil && info.Mode.IsDir() {
			maps.Copy(out, w.files(p))
		} else if b, err := w.ReadFile(p); err == nil {
			out[p] = string(b)
		}
	}
	return out
}

var (
	onSystemDisk = map[string]string{kubelet.Kubeconfig: "new", kubelet.CertDir + "/a.pem": "key"}
	takenAlong   = map[string]string{tempdisk.Dir + "/kubeconfig": "new", tempdisk.Dir + "/pki/a.pem": "key"}
)

func TestOnTempDisk(t *testing.T) {
	stale, kept := tempdisk.Dir+"/pods/old", map[string]string{tempdisk.Dir + "/pods/old": "volume"}
	for name, c := range map[string]struct {
		system, disk, want map[string]string
	}{
		"first time":                       {onSystemDisk, nil, takenAlong},
		"of a system before":               {onSystemDisk, map[string]string{stale: "volume"}, takenAlong},
		"next boot":                        {map[string]string{tempDiskNote: ""}, kept, kept},
		"next boot of the image's scripts": {map[string]string{tempdisk.Sentinel: ""}, kept, kept},
		"the disk came back empty":         {with(onSystemDisk, tempDiskNote, ""), nil, takenAlong},
		"written while the disk was away":  {with(onSystemDisk, tempDiskNote, ""), with(kept, tempdisk.Dir+"/kubeconfig", "old"), with(takenAlong, stale, "volume")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTempDisked(t, c.system)
			w.disk(c.disk)
			for range 2 { // the second time all is done
				if err := OnTempDisk(t.Context(), w); err != nil {
					t.Fatal(err)
				}
				if got, err := mountedAt(t.Context(), w, tempdisk.Target); err != nil || got != "/dev/sdb1" {
					t.Errorf("mounted: %q, %v", got, err)
				}
			}
			if n := slices.Index(w.ran, "mount"); n != len(w.ran)-1 {
				t.Errorf("ran %v", w.ran)
			}
			if diff := cmp.Diff(c.want, w.files(tempdisk.Dir)); diff != "" {
				t.Error(diff)
			}
			if err := w.Unmount(t.Context(), tempdisk.Target); err != nil {
				t.Fatal(err)
			}
			if left := w.files(tempdisk.Target); len(left) > 0 {
				t.Errorf("left below the mount: %v", left)
			}
		})
	}
}

func with(files map[string]string, p, text string) map[string]string {
	out := maps.Clone(files)
	out[p] = text
	return out
}

// Killed before any of its programs, it loses nothing, and the next call completes it.
func TestOnTempDiskIsCompleted(t *testing.T) {
	for failing := range 5 {
		w := newTempDisked(t, onSystemDisk)
		w.disk(map[string]string{tempdisk.Dir + "/pods/old": "volume"})
		w.failing = failing
		err := OnTempDisk(t.Context(), w)
		if e, ok := errors.AsType[*exitcode.Error](err); !ok || e.Number != exitcode.Kubelet || e.Remedy == "" {
			t.Fatalf("program %d, %v: %v", failing, w.ran, err)
		}
		if err := OnTempDisk(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(takenAlong, w.files(tempdisk.Dir)); diff != "" {
			t.Errorf("after program %d failed: %s", failing, diff)
		}
	}
}

// A disk that is mounted later than the service starts is waited for; none at all is told
// with its code, at once where the check asks.
func TestAwaitMount(t *testing.T) {
	w := newTempDisked(t, onSystemDisk)
	start := w.Now()
	err := OnTempDisk(t.Context(), w)
	if e, ok := errors.AsType[*NoDiskError](err); !ok || e.ExitCode() != exitcode.Kubelet || e.Hint() == "" || w.Now().Sub(start) != bootPatience {
		t.Errorf("%v after %s", err, w.Now().Sub(start))
	}
	if err := (Prober{Host: w}).Probe(t.Context(), tempdisk.Check(tempdisk.Settings{Patience: time.Second})); exitcode.Of(err) != exitcode.Kubelet {
		t.Errorf("checked: %v", err)
	}
	if len(w.ran) > 0 || len(w.files(tempdisk.Target)) != len(onSystemDisk) {
		t.Errorf("ran %v", w.ran)
	}
	w.disk(nil)
	if err := (Prober{Host: w}).Probe(t.Context(), tempdisk.Check(tempdisk.Settings{Patience: time.Second})); err != nil {
		t.Error(err)
	}
}

// What runs, and what others mounted, stays.
func TestOnTempDiskLeavesOthersAlone(t *testing.T) {
	w := newTempDisked(t, onSystemDisk)
	w.disk(nil)
	w.Put("/etc/systemd/system/"+kubelet.Unit, "[Service]\nExecStart=/opt/bin/kubelet\n", 0o644)
	w.Put("/opt/bin/kubelet", "", 0o755)
	if err := errors.Join(w.DaemonReload(t.Context()), w.StartUnit(t.Context(), kubelet.Unit)); err != nil {
		t.Fatal(err)
	}
	if err := OnTempDisk(t.Context(), w); err == nil || !strings.Contains(err.Error(), "kubelet.service runs") || exitcode.Of(err) != exitcode.Kubelet {
		t.Errorf("beside a kubelet: %v", err)
	}
	if err := w.StopUnit(t.Context(), kubelet.Unit); err != nil {
		t.Fatal(err)
	}
	if err := w.Mount(t.Context(), host.Mount{Source: "/dev/sdc", Target: tempdisk.Target, Type: "tmpfs"}); err != nil {
		t.Fatal(err)
	}
	if err := OnTempDisk(t.Context(), w); err == nil || !strings.Contains(err.Error(), "/dev/sdc is mounted") {
		t.Errorf("over another disk: %v", err)
	}
	if len(w.ran) > 0 {
		t.Errorf("ran %v", w.ran)
	}
}

func TestTempDiskCode(t *testing.T) {
	if got := unitCode(tempdisk.Unit, "start"); got != exitcode.Kubelet {
		t.Errorf("code %d", got)
	}
	if err := (&desired.Check{Name: "mount", Mount: "mnt", Timeout: 1}).Validate(); err == nil {
		t.Error("a path that is not absolute is accepted")
	}
}
