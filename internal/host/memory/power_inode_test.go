package memory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

// TestPowerCutAndAttributes: a change of attributes in place is old or new until
// the file is synced, and never harms the content.
func TestPowerCutAndAttributes(t *testing.T) {
	modes := func(sync bool) map[string]bool {
		seen := map[string]bool{}
		for seed := range uint64(50) {
			h := New()
			h.Put("/srv/f", "content", 0o644)
			must(t, h.Chmod("/srv/f", 0o600))
			if sync {
				must(t, h.SyncFile("/srv/f"))
			}
			if got := after(t, h, seed, "/srv/f"); got != "content" {
				t.Errorf("seed %d: content %q", seed, got)
			}
			info, err := h.Lstat("/srv/f")
			must(t, err)
			seen[info.Mode.String()] = true
		}
		return seen
	}
	if diff := cmp.Diff(map[string]bool{"-rw-r--r--": true, "-rw-------": true}, modes(false)); diff != "" {
		t.Errorf("not synced: %s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"-rw-------": true}, modes(true)); diff != "" {
		t.Errorf("synced: %s", diff)
	}
}

// TestPowerCutAndHardLinks: a second name is as durable as any name; what both
// names have is one file.
func TestPowerCutAndHardLinks(t *testing.T) {
	link := func(sync bool) func(*Host) {
		return func(h *Host) {
			h.Put("/srv/f", "x", 0o644)
			must(t, h.Link("/srv/f", "/var/lib/g"))
			must(t, h.Remove("/srv/f"))
			if sync {
				must(t, h.SyncDir("/var/lib"))
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"x": true, "none": true}, outcomes(t, "/var/lib/g", link(false))); diff != "" {
		t.Error(diff)
	}
	for seed := range uint64(50) {
		h := New()
		link(true)(h)
		f, err := h.Create("/srv/unsynced")
		must(t, err)
		_, err = f.Write([]byte("123"))
		must(t, err)
		must(t, h.Link("/srv/unsynced", "/srv/twin"))
		must(t, h.SyncDir("/srv"))
		if got := after(t, h, seed, "/var/lib/g"); got != "x" {
			t.Errorf("seed %d: the durable name has %q", seed, got)
		}
		names := uint64(1)
		if info, err := h.Lstat("/srv/f"); err == nil {
			names = 2
			if info.Links != 2 {
				t.Errorf("seed %d: %+v", seed, info)
			}
		}
		g, err := h.Lstat("/var/lib/g")
		must(t, err)
		a, err := h.Lstat("/srv/unsynced")
		must(t, err)
		b, err := h.Lstat("/srv/twin")
		must(t, err)
		if g.Links != names || a != b || a.Links != 2 {
			t.Errorf("seed %d: %d of %d names; %+v and %+v", seed, g.Links, names, a, b)
		}
	}
}

// TestPowerCutAndXattrs: extended attributes are as durable as the mode.
func TestPowerCutAndXattrs(t *testing.T) {
	for seed := range uint64(50) {
		h := New()
		a := attributes
		a.Xattrs = map[string][]byte{"user.a": []byte("durable")}
		must(t, host.WriteFile(h, "/srv/f", nil, a))
		must(t, h.SetXattr("/srv/f", "user.b", []byte("not")))
		h.PowerCut(seed)
		h.Boot()
		got, err := h.Xattrs("/srv/f")
		must(t, err)
		if string(got["user.a"]) != "durable" || seed == LoseAll && len(got) > 1 {
			t.Errorf("seed %d: %q", seed, got)
		}
	}
}

// TestMountsEndWithTheBoot: what was mounted is gone, and what it covered is back.
func TestMountsEndWithTheBoot(t *testing.T) {
	for _, cut := range []bool{false, true} {
		h := New()
		h.Put("/srv/d/f", "below", 0o644)
		for range 2 {
			must(t, h.Mount(t.Context(), host.Mount{Source: "x", Target: "/srv/d", Type: "tmpfs"}))
			must(t, host.WriteFile(h, "/srv/d/g", nil, attributes))
		}
		before := len(h.Tree("/srv/d"))
		if cut {
			h.PowerCut(3)
		}
		h.Boot()
		all, err := h.Mounts(t.Context())
		must(t, err)
		got, err := h.ReadFile("/srv/d/f")
		must(t, err)
		if len(all) != 1 || string(got) != "below" || before != 2 || len(h.Tree("/srv/d")) != 2 {
			t.Errorf("cut %v: mounts %v, %q, %v", cut, all, got, h.Tree("/srv"))
		}
	}
}
