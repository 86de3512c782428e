package converge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
)

// did are the effects of a run that begin with a word.
func did(t *testing.T, h *machine, s *desired.State, word string) []string {
	t.Helper()
	r := effect.Record(h)
	if _, err := engine(r, &providers{}).Apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, line := range r.Lines() {
		if strings.HasPrefix(line, word) {
			out = append(out, line)
		}
	}
	return out
}

// One file that changes costs four syncs: what is about to be done, with its name, and the
// file, with its name. Nothing to do costs none.
func TestSyncsOfOneChangedFile(t *testing.T) {
	st := func(v string) *desired.State {
		return sealed(t, managed("/etc/a", "1\n"), managed("/etc/b", v), &desired.Directory{Path: "/etc/c", Mode: 0o700})
	}
	h := newMachine()
	runs(t, h, st("1\n"))
	if d := did(t, h, st("2\n"), "sync"); len(d) != 4 {
		t.Errorf("changed: %q", d)
	}
	if d := did(t, h, st("2\n"), "sync"); len(d) != 0 {
		t.Errorf("nothing to do: %q", d)
	}
}

// However many definitions, drop-ins and links change, systemd reads them once.
func TestOneReloadPerRun(t *testing.T) {
	st := func(v string, names ...string) *desired.State {
		rs := []desired.Resource{}
		for _, name := range names {
			rs = append(rs, managed("/etc/systemd/system/"+name, kubeletUnit+"#"+v+"\n"),
				managed("/etc/systemd/system/"+name+".d/10-a.conf", "[Service]\nEnvironment=A="+v+"\n"),
				&desired.Unit{Name: name, Enablement: desired.Enabled, Activation: desired.Started})
		}
		return sealed(t, rs...)
	}
	h := newMachine()
	runs(t, h, st("1", "a.service", "b.service", "c.service"))
	if d := did(t, h, st("2", "a.service", "b.service", "c.service"), "daemon-reload"); len(d) != 1 {
		t.Errorf("changed: %q", d)
	}
	if d := did(t, h, st("2", "a.service", "b.service", "c.service"), "daemon-reload"); len(d) != 0 {
		t.Errorf("nothing to do: %q", d)
	}
	if d := did(t, h, sealed(t), "daemon-reload"); len(d) != 1 {
		t.Errorf("withdrawn: %q", d)
	}
}

// The reason of a restart names the input that changed, and no other.
func TestReasonOfARestart(t *testing.T) {
	st := func(a, b, definition string) *desired.State {
		return sealed(t, managed("/etc/conf-a", a), managed("/etc/conf-b", b), managed(override, containerdUnit+"#"+definition+"\n"),
			started("containerd.service", "/etc/conf-a", "/etc/conf-b"))
	}
	for want, s := range map[string]*desired.State{"/etc/conf-a": st("2", "1", "1"), "/etc/conf-b": st("1", "2", "1"), override: st("1", "1", "2")} {
		h := newMachine()
		runs(t, h, st("1", "1", "1"))
		got := map[string]bool{}
		for _, a := range runs(t, h, s).Actions {
			if a.ID == "unit:containerd.service" {
				for _, name := range []string{"/etc/conf-a", "/etc/conf-b", override} {
					got[name] = got[name] || strings.Contains(a.Reason, name)
				}
			}
		}
		all := map[string]bool{"/etc/conf-a": false, "/etc/conf-b": false, override: false}
		all[want] = true
		if d := cmp.Diff(all, got); d != "" {
			t.Errorf("%s changed: %s", want, d)
		}
	}
}
