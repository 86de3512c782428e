package datadisk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const size = 50 << 30

// disk is one of a world.
type disk struct {
	size        int64
	fs, label   string
	id          string
	table, data bool
	bytes       []int64 // where there are some that blkid knows nothing of
	parts       []string
	files       []string
}

// world is a machine with disks. Its programs answer as those of Debian 12 did.
type world struct {
	*memory.Host
	disks  map[string]*disk
	mounts []host.Mount
	// seq is how many disks have been attached.
	seq int
}

func newWorld(disks map[string]*disk) *world {
	w := &world{Host: memory.New(), disks: map[string]*disk{}}
	w.PutDir("/dev")
	w.PutDir(sysBlock)
	for device, d := range disks {
		w.attach(device, d)
	}
	w.attach("/dev/vda", &disk{size: 8 << 30, table: true, parts: []string{"vda1"}})
	w.attach("/dev/loop0", &disk{size: size})
	for name, p := range map[string]func(args []string) (string, int){
		"blkid": w.blkid, "mkfs.ext4": w.mkfs, "cmp": w.compare, "cp": w.copy, "e2label": w.relabel,
	} {
		w.Program("/usr/sbin/"+name, func(c host.Command) host.Output {
			out, code := p(c.Args)
			return host.Output{Stdout: []byte(out), ExitCode: code}
		})
	}
	w.Flush()
	return w
}

func (w *world) attach(device string, d *disk) {
	name := strings.TrimPrefix(device, "/dev/")
	w.disks[device] = d
	at := "/sys/devices/pci0000:00/block/" + name
	for _, p := range d.parts {
		w.PutDir(at + "/" + p)
	}
	w.PutLink("../devices/pci0000:00/block/"+name, sysBlock+"/"+name, 0)
	w.Put(at+"/size", fmt.Sprintf("%d\n", d.size/sector), 0o444)
	w.seq++
	w.Put(at+"/diskseq", fmt.Sprintf("%d\n", w.seq), 0o444)
	w.Put(device, "", 0o600)
}

func (w *world) blkid(args []string) (string, int) {
	if !slices.Contains(args, "--probe") {
		var found []string
		for device, d := range w.disks {
			if d.label == Label {
				found = append(found, device)
			}
		}
		if len(found) == 0 {
			return "", 2
		}
		slices.Sort(found)
		return strings.Join(found, "\n") + "\n", 0
	}
	device := args[len(args)-1]
	switch d := w.disks[device]; {
	case d.fs != "" && d.label != "":
		return "DEVNAME=" + device + "\nLABEL=" + d.label + "\nTYPE=" + d.fs + "\nUSAGE=filesystem\n", 0
	case d.fs != "":
		return "DEVNAME=" + device + "\nUUID=" + d.id + "\nTYPE=" + d.fs + "\nUSAGE=filesystem\n", 0
	case d.table:
		return "DEVNAME=" + device + "\nPTUUID=1\nPTTYPE=gpt\n", 0
	}
	return "", 2
}

func (w *world) mkfs(args []string) (string, int) {
	d := w.disks[args[len(args)-1]]
	d.fs, d.label, d.data, d.files, d.id = "ext4", "", true, nil, args[slices.Index(args, "-U")+1]
	return "", 0
}

func (w *world) compare(args []string) (string, int) {
	d, from, bytes := w.disks[args[len(args)-2]], int64(0), int64(0)
	for _, a := range args {
		_, _ = fmt.Sscanf(a, "--ignore-initial=%d:0", &from)
		_, _ = fmt.Sscanf(a, "--bytes=%d", &bytes)
	}
	hit := func(at int64) bool { return at >= from && at < from+bytes }
	if d.data || slices.ContainsFunc(d.bytes, hit) || from+bytes > d.size {
		return "", 1
	}
	return "", 0
}

// copy notes which files were copied onto the disk that is mounted there.
func (w *world) copy(args []string) (string, int) {
	for _, m := range w.mounts {
		if m.Target == args[len(args)-1] {
			for name := range w.Tree(Dir) {
				w.disks[m.Source].files = append(w.disks[m.Source].files, name)
			}
			return "", 0
		}
	}
	return "", 1
}

func (w *world) relabel(args []string) (string, int) {
	w.disks[args[0]].label = args[1]
	return "", 0
}

func (w *world) Mounts(context.Context) ([]host.Mount, error) { return slices.Clone(w.mounts), nil }

func (w *world) Mount(_ context.Context, m host.Mount) error {
	if w.disks[m.Source].fs != m.Type {
		return syscall.EINVAL
	}
	w.mounts = append(w.mounts, m)
	return nil
}

func (w *world) Unmount(_ context.Context, target string) error {
	w.mounts = slices.DeleteFunc(w.mounts, func(m host.Mount) bool { return m.Target == target })
	return nil
}

func (w *world) at() string {
	device, _ := isMounted(context.Background(), w, Dir)
	return device
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("waited long enough"))
	t.Cleanup(cancel)
	return ctx
}

func TestMakes(t *testing.T) {
	w := newWorld(map[string]*disk{"/dev/vdb": {size: size}, "/dev/vdc": {size: size + sector}})
	w.Put(Dir+"/kubeconfig-bootstrap", "x", 0o600)
	if err := Ensure(t.Context(), w, size); err != nil {
		t.Fatal(err)
	}
	want := &disk{size: size, fs: "ext4", label: Label, data: true, files: []string{Dir + "/kubeconfig-bootstrap"}}
	got := w.disks["/dev/vdb"]
	got.id = ""
	got.files = slices.DeleteFunc(got.files, func(name string) bool { return name == Dir })
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(disk{})); diff != "" || w.at() != "/dev/vdb" {
		t.Errorf("at %q, disk: %s", w.at(), diff)
	}
	before := len(w.disks["/dev/vdb"].files)
	w.mounts = nil // a boot
	if err := Ensure(t.Context(), w, size); err != nil || w.at() != "/dev/vdb" || len(w.disks["/dev/vdb"].files) != before {
		t.Errorf("after a boot: %v at %q", err, w.at())
	}
}

func TestRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		disks map[string]*disk
		want  error
	}{
		"two":             {map[string]*disk{"/dev/vdb": {size: size}, "/dev/vdc": {size: size}}, &ManyError{}},
		"file system":     {map[string]*disk{"/dev/vdb": {size: size, fs: "xfs"}}, &UsedError{}},
		"ext4 of another": {map[string]*disk{"/dev/vdb": {size: size, fs: "ext4"}}, &UsedError{}},
		"partition table": {map[string]*disk{"/dev/vdb": {size: size, table: true}}, &UsedError{}},
		"partitions":      {map[string]*disk{"/dev/vdb": {size: size, parts: []string{"vdb1"}}}, &UsedError{}},
		"unknown data":    {map[string]*disk{"/dev/vdb": {size: size, data: true}}, &UsedError{}},
		"data at 1 GiB":   {map[string]*disk{"/dev/vdb": {size: size, bytes: spread(1<<30, size)}}, &UsedError{}},
		"data at the end": {map[string]*disk{"/dev/vdb": {size: size, bytes: []int64{size - 1}}}, &UsedError{}},
		"two with label":  {map[string]*disk{"/dev/vdb": {size: 1, fs: "ext4", label: Label}, "/dev/vdc": {size: 1, fs: "ext4", label: Label}}, &ManyError{}},
		"none":            {nil, &AbsentError{}},
		"other size":      {map[string]*disk{"/dev/vdb": {size: size - sector}}, &AbsentError{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in which no disk is too slow to be read
				w := newWorld(c.disks)
				before := fmt.Sprint(deref(w.disks))
				err := Ensure(soon(t), w, size)
				if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", c.want) {
					t.Fatalf("%T: %v", err, err)
				}
				if after := fmt.Sprint(deref(w.disks)); after != before || w.at() != "" {
					t.Errorf("before %s, after %s", before, after)
				}
			})
		})
	}
}

// spread is data from an offset up to another, of which each MiB has a byte.
func spread(from, to int64) (all []int64) {
	for at := from; at < to; at += 1 << 20 {
		all = append(all, at)
	}
	return all
}

func TestExtents(t *testing.T) {
	for _, size := range []int64{sector, edge, 160 << 20, 160<<20 + sector, 161<<20 - sector, 200 << 20, size, 16<<40 + sector} {
		all := extents(size)
		slices.SortFunc(all, func(a, b extent) int { return int(a.from - b.from) })
		var end, read, widest int64
		for _, p := range all {
			if p.from < end || p.bytes <= 0 {
				t.Errorf("of %d bytes: %+v begins before %d", size, p, end)
			}
			widest = max(widest, p.from-end)
			end, read = p.from+p.bytes, read+p.bytes
		}
		if all[0].from != 0 || end != size || read > 2*edge+2*samples*sample || widest > size/samples+sample {
			t.Errorf("of %d bytes up to %d, %d in all, with a gap of %d: %+v", size, end, read, widest, all)
		}
	}
}

func deref(disks map[string]*disk) map[string]disk {
	out := map[string]disk{}
	for name, d := range disks {
		out[name] = *d
	}
	return out
}

// What a running kubelet has in its directory is not covered.
func TestRunning(t *testing.T) {
	w := newWorld(map[string]*disk{"/dev/vdb": {size: size}})
	err := Ensure(t.Context(), withKubelet{w, "active"}, size)
	if _, ok := errors.AsType[*RunningError](err); !ok || w.at() != "" || w.disks["/dev/vdb"].fs != "" {
		t.Errorf("%v, at %q", err, w.at())
	}
	if err := Ensure(t.Context(), withKubelet{w, "activating"}, size); err != nil || w.at() != "/dev/vdb" {
		t.Errorf("a kubelet that can't start without its data keeps them away: %v, at %q", err, w.at())
	}
}

// A disk with something on it does not hide an empty one.
func TestTakesTheEmptyOne(t *testing.T) {
	w := newWorld(map[string]*disk{"/dev/vdb": {size: size, fs: "xfs"}, "/dev/vdc": {size: size}})
	if err := Ensure(t.Context(), w, size); err != nil || w.at() != "/dev/vdc" || w.disks["/dev/vdb"].fs != "xfs" {
		t.Error(err, w.at())
	}
}

func TestWaits(t *testing.T) {
	w := newWorld(nil)
	done, watching := make(chan error, 1), make(chan bool, 1)
	go func() { done <- Ensure(t.Context(), watched{w, watching}, size) }()
	<-watching
	w.attach("/dev/vdb", &disk{size: size})
	if err := <-done; err != nil || w.at() != "/dev/vdb" {
		t.Error(err, w.at())
	}
}

// watched tells when somebody has begun to watch.
type watched struct {
	*world
	begun chan bool
}

func (w watched) Watch(ctx context.Context, what host.Watched) (<-chan host.Event, error) {
	events, err := w.world.Watch(ctx, what)
	w.begun <- true
	return events, err
}

// Killed at any effect, the next call completes it, and the disk holds what the
// directory held.
func TestKilledAnywhere(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(map[string]*disk{"/dev/vdb": {size: size}})
		w.Put(Dir+"/kubeconfig-bootstrap", "x", 0o600)
		w.Flush()
		in := effect.Inject(w, effect.Plan{{At: n, Kind: effect.StopAfter}})
		err := Ensure(t.Context(), in, size)
		if in.Hit() == nil {
			if err != nil || n < 8 {
				t.Fatalf("undisturbed after %d effects: %v", n-1, err)
			}
			return
		}
		if n%2 == 0 { // the machine went down, too
			w.mounts = nil
			w.Boot()
		}
		if err := Ensure(t.Context(), w, size); err != nil {
			t.Fatalf("after a stop at effect %d: %v", n, err)
		}
		d := w.disks["/dev/vdb"]
		if w.at() != "/dev/vdb" || d.label != Label || !slices.Contains(d.files, Dir+"/kubeconfig-bootstrap") {
			t.Errorf("after a stop at effect %d: at %q, %+v", n, w.at(), *d)
		}
		if w.mounts[len(w.mounts)-1].Target != Dir || len(w.mounts) != 1 {
			t.Errorf("after a stop at effect %d: %v", n, w.mounts)
		}
		for _, left := range []string{staging, notePath} {
			if _, err := w.Lstat(left); err == nil {
				t.Errorf("after a stop at effect %d: %s is left", n, left)
			}
		}
	}
}

// TestNameOfAnother: the kernel's names of disks change with a boot. The disk that has the
// name now under which berth had begun is somebody's, and stays as it is.
func TestNameOfAnother(t *testing.T) {
	stoppedHalfWay(t, func(n int, w *world) {
		if w.disks["/dev/vdb"].label != "" {
			return // it is known by that
		}
		w.mounts = nil
		w.Boot()
		w.attach("/dev/vdc", w.disks["/dev/vdb"]) // berth's own, which has another name now
		theirs := &disk{size: size, fs: "ext4", data: true, files: []string{"/their/database"}}
		w.attach("/dev/vdb", theirs)
		_ = Ensure(t.Context(), w, size)
		if !slices.Equal(theirs.files, []string{"/their/database"}) || theirs.label != "" {
			t.Fatalf("stopped after effect %d: the disk of somebody else was formatted: %+v", n, *theirs)
		}
	})
}

// stoppedHalfWay gives each machine on which Ensure was stopped after an effect with which it
// had noted its disk.
func stoppedHalfWay(t *testing.T, check func(n int, w *world)) {
	t.Helper()
	noted := 0
	for n := 1; ; n++ {
		w := newWorld(map[string]*disk{"/dev/vdb": {size: size}})
		w.PutDir(Dir)
		w.Flush()
		in := effect.Inject(w, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_ = Ensure(t.Context(), in, size)
		if in.Hit() == nil {
			break
		}
		if begun, err := w.ReadFile(notePath); err == nil && strings.HasPrefix(string(begun), "/dev/vdb ") {
			noted++
			check(n, w)
		}
	}
	if noted == 0 {
		t.Error("it was never stopped half-way")
	}
}

// TestDiskInPlaceOfAnother: a disk that takes the place of the one with which berth had begun has
// its name at once. It is not taken for that one, whatever was on it.
func TestDiskInPlaceOfAnother(t *testing.T) {
	stoppedHalfWay(t, func(n int, w *world) {
		w.mounts = nil
		theirs := &disk{size: size, data: true, files: []string{"/their/volume"}}
		w.attach("/dev/vdb", theirs)
		if err := Ensure(t.Context(), w, size); err == nil || theirs.fs != "" {
			t.Fatalf("stopped after effect %d: the disk of somebody else was formatted: %+v, %v", n, *theirs, err)
		}
	})
}
