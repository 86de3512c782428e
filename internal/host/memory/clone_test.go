package memory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

// arranged is a machine with names, contents and attributes that are not yet durable, hard
// links, a mount, a value, a table, and units in several states.
func arranged(t *testing.T) *Host {
	t.Helper()
	h := New()
	h.PutDir("/srv")
	h.PutDir("/mnt/disk")
	h.Put("/srv/kept", "durable", 0o644)
	h.Value("/proc/sys/vm/swappiness", "60\n")
	h.Put("/etc/systemd/system/a.service", "[Service]\nExecStart=/srv/kept\n", 0o644)
	h.Flush()
	changes(t, h, "first")
	must(t, h.Mount(t.Context(), host.Mount{Type: "tmpfs", Target: "/mnt/disk"}))
	h.Put("/mnt/disk/inside", "mounted", 0o600)
	must(t, h.StartUnit(t.Context(), "a.service"))
	return h
}

// changes are some that are not durable when they end.
func changes(t *testing.T, h *Host, text string) {
	t.Helper()
	f, err := h.Append("/srv/kept")
	must(t, err)
	_, err = f.Write([]byte(text))
	must(t, err)
	must(t, f.Close())
	must(t, h.WriteValue("/proc/sys/vm/swappiness", []byte(text)))
	must(t, h.Chmod("/srv", 0o700))
	f, err = h.Create("/srv/new-" + text)
	must(t, err)
	must(t, f.Close())
	must(t, h.Link("/srv/kept", "/srv/link-"+text))
	must(t, h.Rename("/srv/new-"+text, "/srv/renamed-"+text))
	must(t, h.RestartUnit(t.Context(), "a.service"))
}

// A copy goes the way of its original, and neither sees what becomes of the other.
func TestClone(t *testing.T) {
	h := arranged(t)
	was := state(h)
	same := h.Clone()
	if d := cmp.Diff(was, state(same)); d != "" {
		t.Fatal("the copy:", d)
	}
	other, third := h.Clone(), h.Clone()
	changes(t, other, "two")
	went := state(other)
	changes(t, third, "six")
	if d := cmp.Diff(went, state(other)); d != "" {
		t.Error("a copy, after another went on:", d)
	}
	other.PowerCut(NamesOnly)
	other.Boot()
	if d := cmp.Diff(was, state(h)); d != "" {
		t.Error("the original, after the copy went on:", d)
	}
	for seed := range uint64(20) {
		one, two := h.Clone(), h.Clone()
		changes(t, one, "longer than the other")
		for _, m := range []*Host{two, one} {
			m.Advance(time.Minute)
			m.PowerCut(seed)
			m.Boot()
		}
		again := h.Clone()
		again.Advance(time.Minute)
		again.PowerCut(seed)
		again.Boot()
		if d := cmp.Diff(state(two), state(again)); d != "" {
			t.Fatalf("two copies after a power cut, seed %d: %s", seed, d)
		}
	}
	changes(t, h, "two")
	changes(t, same, "two")
	if d := cmp.Diff(state(h), state(same)); d != "" {
		t.Error("the copy, after both went on:", d)
	}
}

// What a machine is decides its digest: a copy has the same, one that went on has another,
// and of what a power cut undoes nothing is left in it.
func TestDigest(t *testing.T) {
	h := arranged(t)
	h.Flush()
	was := h.Digest()
	if got := h.Clone().Digest(); got != was {
		t.Error("a copy has another digest")
	}
	f, err := h.Create("/srv/new")
	must(t, err)
	seen := map[uint64]string{was: "before"}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"a file", func() error { return nil }},
		{"its content", func() error { _, err := f.Write([]byte("text")); return err }},
		{"that it is durable", f.Sync},
		{"its mode", func() error { return h.Chmod("/srv/new", 0o750) }},
		{"its owner", func() error { return h.Chown("/srv/new", 1, 2) }},
		{"another name", func() error { return h.Link("/srv/new", "/srv/newer") }},
		{"that its names are durable", func() error { return h.SyncDir("/srv") }},
		{"a link", func() error { return h.Symlink("new", "/srv/link") }},
		{"a value", func() error { return h.WriteValue("/proc/sys/vm/swappiness", []byte("5")) }},
		{"a job", func() error { return h.RestartUnit(t.Context(), "a.service") }},
		{"a mount", func() error { return h.Unmount(t.Context(), "/mnt/disk") }},
		{"a boot", func() error { h.Boot(); return nil }},
	} {
		must(t, step.do())
		got := h.Digest()
		if same := seen[got]; same != "" {
			t.Errorf("the digest does not tell %s from %s", step.name, same)
		}
		seen[got] = step.name
	}
	h.Flush()
	one, two := h.Clone(), h.Clone()
	lost, err := two.Create("/srv/lost")
	must(t, err)
	must(t, lost.Close())
	one.PowerCut(LoseAll)
	two.PowerCut(LoseAll)
	if one.Digest() != two.Digest() {
		t.Error("the digest tells a machine whose file a power cut took from one that never had it")
	}
}

func state(h *Host) map[string]any {
	return map[string]any{"tree": h.Tree(), "units": h.Units(), "values": h.Values(), "jobs": h.Jobs(), "now": h.Now(), "boots": h.Boots()}
}
