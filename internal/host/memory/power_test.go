package memory

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

var attributes = host.Attributes{Mode: 0o640, UID: 1, GID: 2}

// content of a file after a power cut, or "none".
func after(t *testing.T, h *Host, seed uint64, p string) string {
	t.Helper()
	h.PowerCut(seed)
	h.Boot()
	b, err := h.ReadFile(p)
	if errors.Is(err, syscall.ENOENT) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// outcomes are the contents that 200 power cuts leave.
func outcomes(t *testing.T, p string, do func(*Host)) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for seed := range uint64(200) {
		h := New()
		do(h)
		seen[after(t, h, seed, p)] = true
	}
	return seen
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, h *Host, p, content string, sync bool) {
	t.Helper()
	f, err := h.Create(p)
	must(t, err)
	_, err = f.Write([]byte(content))
	must(t, err)
	if sync {
		must(t, f.Sync())
	}
	must(t, f.Close())
}

func TestPowerCutLosesWhatWasNotSynced(t *testing.T) {
	zeros := "\x00\x00\x00"
	for _, c := range []struct {
		name string
		do   func(*Host)
		want map[string]bool
	}{
		{
			"durable write survives",
			func(h *Host) { must(t, host.WriteFile(h, "/srv/f", []byte("new"), attributes)) },
			map[string]bool{"new": true},
		},
		{
			"durable write over another",
			func(h *Host) {
				must(t, host.WriteFile(h, "/srv/f", []byte("old"), attributes))
				must(t, host.WriteFile(h, "/srv/f", []byte("new"), attributes))
			},
			map[string]bool{"new": true},
		},
		{
			"name not synced: whole or absent",
			func(h *Host) { create(t, h, "/srv/f", "new", true) },
			map[string]bool{"new": true, "none": true},
		},
		{
			"replacement not synced: old or new",
			func(h *Host) {
				h.Put("/srv/f", "old", 0o644)
				must(t, host.Prepare(h, "/srv/f", []byte("new"), attributes))
				must(t, host.Commit(h, "/srv/f"))
			},
			map[string]bool{"old": true, "new": true},
		},
		{
			"content not synced",
			func(h *Host) {
				create(t, h, "/srv/f", "new", false)
				must(t, h.SyncDir("/srv"))
			},
			map[string]bool{"": true, "n": true, "ne": true, "new": true, zeros: true},
		},
		{
			"renamed before content was synced",
			func(h *Host) {
				h.Put("/srv/f", "old", 0o644)
				create(t, h, "/srv/g", "new", false)
				must(t, h.Rename("/srv/g", "/srv/f"))
				must(t, h.SyncDir("/srv"))
			},
			map[string]bool{"": true, "n": true, "ne": true, "new": true, zeros: true},
		},
		{
			"removal not synced",
			func(h *Host) {
				h.Put("/srv/f", "old", 0o644)
				must(t, h.Remove("/srv/f"))
			},
			map[string]bool{"old": true, "none": true},
		},
		{
			"directory not synced takes its files along",
			func(h *Host) {
				must(t, h.Mkdir("/srv/d", 0o755))
				create(t, h, "/srv/d/f", "new", true)
				must(t, h.SyncDir("/srv/d"))
				must(t, h.Rename("/srv/d", "/srv/e"))
			},
			map[string]bool{"none": true},
		},
		{
			"flushed",
			func(h *Host) { create(t, h, "/srv/f", "new", false); h.Flush() },
			map[string]bool{"new": true},
		},
		{
			"clean reboot",
			func(h *Host) { create(t, h, "/srv/f", "new", false); h.Boot() },
			map[string]bool{"new": true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, outcomes(t, "/srv/f", c.do)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPowerCutSeeds(t *testing.T) {
	do := func(h *Host) {
		create(t, h, "/srv/f", "abc", false)
		h.Put("/srv/g", "old", 0o600)
		must(t, h.Chmod("/srv/g", 0o644))
	}
	h := New()
	do(h)
	if got := after(t, h, LoseAll, "/srv/f"); got != "none" {
		t.Errorf("LoseAll leaves %q", got)
	}
	h = New()
	do(h)
	if got := after(t, h, NamesOnly, "/srv/f"); got != "" {
		t.Errorf("NamesOnly leaves %q", got)
	}
	if info, err := h.Lstat("/srv/g"); err != nil || info.Mode != 0o600 {
		t.Errorf("mode %v, %v", info.Mode, err)
	}
}

// TestPowerCutIsAtomic moves a file between directories: it is at one of the
// names, at no time at both or at none.
func TestPowerCutIsAtomic(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(100) {
		h := New()
		h.Put("/srv/a/f", "x", 0o644)
		h.PutDir("/srv/b")
		h.PutDir("/srv/c")
		must(t, h.Rename("/srv/a/f", "/srv/b/f"))
		must(t, h.Rename("/srv/b/f", "/srv/c/f"))
		h.PowerCut(seed)
		at := ""
		for _, d := range []string{"a", "b", "c"} {
			if _, err := h.Lstat("/srv/" + d + "/f"); err == nil {
				at += d
			}
		}
		seen[at] = true
	}
	if diff := cmp.Diff(map[string]bool{"a": true, "b": true, "c": true}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestPowerCutIsDeterministic(t *testing.T) {
	run := func(seed uint64) map[string]string {
		h := New()
		for i := range 20 {
			create(t, h, fmt.Sprintf("/srv/%d", i), "some content", i%2 == 0)
		}
		h.PowerCut(seed)
		h.Boot()
		return h.Tree("/srv")
	}
	if diff := cmp.Diff(run(7), run(7)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(run(7), run(8)) {
		t.Error("two seeds do the same")
	}
}

func TestOff(t *testing.T) {
	h := New()
	h.Program("/usr/bin/true", func(host.Command) host.Output { return host.Output{} })
	f, err := h.Create("/srv/f")
	must(t, err)
	h.PowerCut(2)
	if err := h.StartUnit(t.Context(), "x.service"); !errors.Is(err, syscall.EHOSTDOWN) {
		t.Errorf("start: %v", err)
	}
	if _, err := h.Run(t.Context(), host.Command{Path: "true"}); !errors.Is(err, syscall.EHOSTDOWN) {
		t.Errorf("run: %v", err)
	}
	h.Boot()
	if _, err := f.Write([]byte("x")); !errors.Is(err, syscall.EBADF) {
		t.Errorf("write to a file of before: %v", err)
	}
	_, err = h.Run(t.Context(), host.Command{Path: "true"})
	must(t, err)
}

func TestBootClearsWhatIsPerBoot(t *testing.T) {
	h := New()
	h.Put("/run/berth/x", "", 0o600)
	h.Put("/tmp/x", "", 0o600)
	h.Value("/proc/sys/vm/x", "1\n")
	must(t, h.WriteValue("/proc/sys/vm/x", []byte("2")))
	id, err := h.ReadFile("/proc/sys/kernel/random/boot_id")
	must(t, err)
	h.Boot()
	if diff := cmp.Diff(map[string]string{"/run": "drwxr-xr-x 0:0", "/tmp": "drwxr-xr-x 0:0"}, h.Tree("/run", "/tmp")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"/proc/sys/vm/x": "1\n"}, h.Values()); diff != "" {
		t.Error(diff)
	}
	next, err := h.ReadFile("/proc/sys/kernel/random/boot_id")
	must(t, err)
	if string(id) == string(next) || h.Boots() != 2 {
		t.Errorf("boot %d has ID %s, the one before %s", h.Boots(), next, id)
	}
}

func TestKillFreesLocks(t *testing.T) {
	h := New()
	_, err := h.Lock(t.Context(), "/run/lock", "first")
	must(t, err)
	create(t, h, "/srv/f", "kept", false)
	h.Kill()
	_, err = h.Lock(t.Context(), "/run/lock", "second")
	must(t, err)
	b, err := h.ReadFile("/srv/f")
	must(t, err)
	if string(b) != "kept" {
		t.Errorf("content %q", b)
	}
}

// A restart of userspace alone: all units end, those that a boot wants start, and the
// kernel's boot ID and /run stay.
func TestSoftReboot(t *testing.T) {
	const name = "kept.service"
	h := New()
	h.Put("/etc/systemd/system/"+name, "[Service]\nExecStart=/bin/x\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	h.Put("/etc/systemd/system/other.service", "[Service]\nExecStart=/bin/x\n", 0o644)
	h.PutLink("/etc/systemd/system/"+name, "/etc/systemd/system/multi-user.target.wants/"+name, 0)
	h.Program("/bin/x", func(host.Command) host.Output { return host.Output{} })
	h.Put("/run/kept", "x", 0o644)
	for _, n := range []string{name, "other.service"} {
		if err := h.StartUnit(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	unit := func(n string) host.UnitStatus {
		t.Helper()
		st, err := h.Unit(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	id, err := h.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	run, target := unit(name).InvocationID, unit("sysinit.target").InvocationID
	h.SoftReboot()
	if now, err := h.ReadFile("/proc/sys/kernel/random/boot_id"); err != nil || string(now) != string(id) {
		t.Errorf("boot ID %q, %v", now, err)
	}
	if _, err := h.Lstat("/run/kept"); err != nil {
		t.Error(err)
	}
	if st := unit(name); st.ActiveState != "active" || st.InvocationID == run {
		t.Errorf("what the boot wants: %s, run %s", st.ActiveState, st.InvocationID)
	}
	if st := unit("other.service"); st.ActiveState != "inactive" {
		t.Errorf("what it does not want: %s", st.ActiveState)
	}
	if st := unit("sysinit.target"); st.ActiveState != "active" || st.InvocationID == target || target == "" {
		t.Errorf("the target: %s, run %s", st.ActiveState, st.InvocationID)
	}
}
