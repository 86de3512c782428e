package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

func TestNewNeedsADirectory(t *testing.T) {
	if _, err := New(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestModes(t *testing.T) {
	for _, m := range []fs.FileMode{0, 0o644, 0o777 | fs.ModeSticky, 0o4 | fs.ModeSetuid, 0o70 | fs.ModeSetgid} {
		if got := mode(kernelMode(m) | syscall.S_IFREG); got != m {
			t.Errorf("%v became %v", m, got)
		}
	}
	for kernel, want := range map[uint32]fs.FileMode{
		syscall.S_IFDIR: fs.ModeDir, syscall.S_IFLNK: fs.ModeSymlink, syscall.S_IFIFO: fs.ModeNamedPipe,
		syscall.S_IFSOCK: fs.ModeSocket, syscall.S_IFBLK: fs.ModeDevice, syscall.S_IFCHR: fs.ModeDevice | fs.ModeCharDevice,
	} {
		if got := mode(kernel); got != want {
			t.Errorf("%o is %v, want %v", kernel, got, want)
		}
	}
}

// TestRootIsAJail has links that would lead out of the root directory.
func TestRootIsAJail(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"absolute": outside, "up": "../../../../../../../../" + outside} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	h, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/absolute/f", "/up/f"} {
		if b, err := h.ReadFile(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", p, b, err)
		}
	}
}

func TestPipeIsNotRead(t *testing.T) {
	p := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(p, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := New("/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.ReadFile(p); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("error %v", err)
	}
}

func TestLinksUnderTheKernelsTrees(t *testing.T) {
	h, err := New("/")
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.ReadFile("/proc/self/status")
	if err != nil || len(b) == 0 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestRefused(t *testing.T) {
	answer := func(name string) error {
		return fmt.Errorf("call: %w", dbus.Error{Name: name, Body: []any{"text"}})
	}
	for _, c := range []struct {
		err  error
		want error
	}{
		{answer("org.freedesktop.systemd1.NoSuchUnit"), host.ErrNoSuchUnit},
		{answer("org.freedesktop.systemd1.UnitMasked"), host.ErrUnitMasked},
		{answer("org.freedesktop.systemd1.LoadFailed"), host.ErrBadUnit},
		{answer("org.freedesktop.systemd1.JobTypeNotApplicable"), host.ErrNotApplicable},
		{host.ErrNoSystemd, host.ErrNoSystemd},
	} {
		if err := refused("x.service", c.err); !errors.Is(err, c.want) {
			t.Errorf("%v became %v", c.err, err)
		}
	}
	var unit *host.UnitError
	if err := refused("x.service", answer("org.example.Other")); !errors.As(err, &unit) || unit.Unit != "x.service" {
		t.Errorf("error %v", err)
	}
	if err := refused("x.service", nil); err != nil {
		t.Errorf("error %v", err)
	}
}

func TestJobResult(t *testing.T) {
	for _, c := range []struct {
		verb string
		st   host.UnitStatus
		want string
	}{
		{"start", host.UnitStatus{ActiveState: "active"}, "done"},
		{"start", host.UnitStatus{ActiveState: "inactive", Result: "success"}, "done"},
		{"restart", host.UnitStatus{ActiveState: "failed", Result: "exit-code"}, "failed"},
		{"restart", host.UnitStatus{ActiveState: "activating", SubState: "auto-restart"}, "failed"},
		{"stop", host.UnitStatus{ActiveState: "failed"}, "done"},
		{"stop", host.UnitStatus{ActiveState: "active"}, "failed"},
	} {
		if got := jobResult(c.verb, c.st); got != c.want {
			t.Errorf("%s, %+v: %s", c.verb, c.st, got)
		}
	}
}

func TestProps(t *testing.T) {
	p := props{"A": dbus.MakeVariant("x"), "B": dbus.MakeVariant(uint64(1_000_001)), "C": dbus.MakeVariant([]any{uint32(4), "/job/4"})}
	if get[string](p, "A") != "x" || get[uint32](p, "A") != 0 || get[bool](p, "none") {
		t.Error("properties of another type or none are not zero")
	}
	if at := p.at("B"); at.UnixMicro() != 1_000_001 || !p.at("none").IsZero() {
		t.Errorf("time %v", at)
	}
	if hasJob(p) || !hasJob(props{"Job": p["C"]}) {
		t.Error("job not recognised")
	}
}

// TestListed: what a listing tells of a unit that shows the state of another one.
func TestListed(t *testing.T) {
	got := listed(systemd.UnitStatus{Name: "dev-sda2.swap", LoadState: "loaded", ActiveState: "active", SubState: "active", Followed: "disk.swap"})
	want := host.UnitStatus{Name: "dev-sda2.swap", LoadState: "loaded", ActiveState: "active", SubState: "active", Following: "disk.swap"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
