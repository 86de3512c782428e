package drained

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func machine() *memory.Host {
	m := memory.New()
	m.PutDir("/var/lib/berth")
	return m
}

// TestNote: what is saved is loaded, by one that does not know all of it, too, and goes.
func TestNote(t *testing.T) {
	m := machine()
	if n, err := Load(m); n != nil || err != nil {
		t.Fatal(n, err)
	}
	want := &Note{Node: "n1", UID: "u", Since: time.Date(2026, 11, 23, 16, 0, 0, 0, time.UTC), Broken: true}
	if err := want.Save(m); err != nil {
		t.Fatal(err)
	}
	got, err := Load(m)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if s := got.String(); !strings.Contains(s, "n1 at 2026-11-23T16:00:00Z") || !strings.Contains(s, "mended") || !strings.Contains(got.Remedy(), "kubectl uncordon n1") {
		t.Error(s, got.Remedy())
	}
	if err := Forget(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if n, err := Load(m); n != nil || err != nil {
		t.Error(n, err)
	}
	m.Put(notePath, `{"node":"n1"}`+"\n", 0o600) // as earlier versions wrote it
	if n, err := Load(m); err != nil || cmp.Diff(&Note{Node: "n1"}, n) != "" || !strings.Contains(n.String(), "n1 for another kubelet; the run") {
		t.Error(n, err)
	}
}

// FuzzLoad: whatever is in the file, it is a note or none.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"node":"n1"}`, `{"node":1}`, `null`, `{"node":"n","since":"x"}`, `{"node":"n","since":"2026-11-23T16:00:00Z","broken":true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m := machine()
		m.Put(notePath, string(text), 0o600)
		n, err := Load(m)
		if err != nil || n == nil {
			t.Fatal(n, err)
		}
		if err := n.Save(m); err != nil {
			return // a year that JSON has no form for
		}
		again, err := Load(m)
		if err != nil || !again.Since.Equal(n.Since) || again.Node != n.Node || again.UID != n.UID || again.Broken != n.Broken {
			t.Errorf("%+v, then %+v, %v", n, again, err)
		}
	})
}

// TestDamaged: a note that says nothing says so.
func TestDamaged(t *testing.T) {
	for _, text := range []string{"", "{", "null", "{}", `{"node":1}`} {
		m := machine()
		m.Put(notePath, text, 0o600)
		n, err := Load(m)
		if err != nil || n == nil || !n.Damaged() || !strings.Contains(n.String(), notePath+" is damaged") || !strings.Contains(n.Remedy(), "kubectl get nodes") {
			t.Errorf("%q: %v, %v", text, n, err)
		}
	}
}

// TestArm: systemd calls berth once kubelet runs, also in the next boot, until it was done.
func TestArm(t *testing.T) {
	m := machine()
	before := m.Tree("/etc")
	calls := 0
	m.Program("/usr/bin/berth", func(c host.Command) host.Output {
		if calls++; strings.Join(c.Args, " ") != "node uncordon" {
			t.Errorf("called with %q", c.Args)
		}
		return host.Output{ExitCode: 2 - calls}
	})
	n := &Note{Node: "n1"}
	for range 2 {
		if err := errors.Join(n.Save(m), Arm(t.Context(), m, "/usr/bin/berth")); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := m.Unit(t.Context(), Timer); err != nil || s.ActiveState != "active" || s.UnitFileState != "enabled" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := m.StartUnit(t.Context(), "berth-uncordon.service"); err == nil {
		t.Error("it did not fail")
	}
	if err := m.Sleep(t.Context(), 11*time.Second); err != nil || calls != 2 {
		t.Errorf("called %d times, %v", calls, err)
	}
	if err := Forget(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	after := m.Tree("/etc")
	for _, p := range []string{"/etc/systemd", "/etc/systemd/system", "/etc/systemd/system/timers.target.wants"} {
		delete(after, p)
		delete(before, p)
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
	if s, err := m.Unit(t.Context(), Timer); err != nil || s.ActiveState == "active" {
		t.Errorf("%+v, %v", s, err)
	}
}
