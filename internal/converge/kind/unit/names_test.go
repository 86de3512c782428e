package unit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What systemd 252 makes of specifiers in [Install] (systemctl enable); %I, %J and %P it
// refuses there.
func TestExpand(t *testing.T) {
	const value = "n%n N%N p%p i%i j%j I%I J%J P%P pc%%"
	for name, want := range map[string]string{
		`foo-a@x-y\x2dz.service`: `nfoo-a@x-y\x2dz.service Nfoo-a@x-y\x2dz pfoo-a ix-y\x2dz ja I%I J%J P%P pc%%`,
		`bar-b\x2dc.service`:     `nbar-b\x2dc.service Nbar-b\x2dc pbar-b\x2dc i jb\x2dc I%I J%J P%P pc%%`,
	} {
		if d := cmp.Diff(want, expand(value, name)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// The names under which drop-ins may lie, those first that win, as systemd 252 takes them.
func TestConfigurers(t *testing.T) {
	for name, want := range map[string][]string{
		"a-b-c@x.service": {"a-b-c@x.service", "a-b-c@.service", "a-b-.service", "a-.service", "a-b-@x.service", "a-b-@.service", "a-@x.service", "a-@.service", "service"},
		"foo.socket":      {"foo.socket", "socket"},
		"a-b.service":     {"a-b.service", "a-.service", "service"},
	} {
		if d := cmp.Diff(want, configurers(name)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// What systemd is asked for has all that a drop-in may concern.
func TestPattern(t *testing.T) {
	for of, want := range map[string]string{
		"service": "*.service", "w.service": "w.service", "w@.service": "w@*.service", "w@a.service": "w@a.service",
		"w-.service": "w-*.service", "w-@.service": "w-*@*.service", "w-@a.service": "w-*@a.service",
	} {
		if got := (part{of: of, role: dropIn}).pattern(); got != want {
			t.Errorf("%s: %s, want %s", of, got, want)
		}
	}
}
