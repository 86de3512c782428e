package unitname

import "testing"

// As systemd-escape(1) takes the same names apart.
func TestNames(t *testing.T) {
	for name, want := range map[string]struct {
		template, instance string
		isTemplate         bool
	}{
		"w.service":                    {},
		"io.x.proxy.service":           {},
		"w@.service":                   {isTemplate: true},
		"io.x.proxy@.service":          {isTemplate: true},
		"w@a.service":                  {template: "w@.service", instance: "a"},
		"w@.a.service":                 {template: "w@.service", instance: ".a"},
		"w@a@.service":                 {template: "w@.service", instance: "a@"},
		"w@@.service":                  {template: "w@.service", instance: "@"},
		"io.example.proxy@a.b.service": {template: "io.example.proxy@.service", instance: "a.b"},
	} {
		if IsTemplate(name) != want.isTemplate || Template(name) != want.template || Instance(name) != want.instance {
			t.Errorf("%s: a template %v, of %q, instance %q", name, IsTemplate(name), Template(name), Instance(name))
		}
	}
}

// As systemd-escape --path says.
func TestOfPath(t *testing.T) {
	for path, want := range map[string]string{
		"/": "-", "/swapfile": "swapfile", "/mnt/swapfile": "mnt-swapfile", "/var//lib/a b/": `var-lib-a\x20b`, "/a-b/.c": `a\x2db-.c`,
		"/.a": `\x2ea`, "/ä": `\xc3\xa4`, "/a:b_C.9": "a:b_C.9",
	} {
		if got := OfPath(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
