package unitname

import (
	"path"
	"strings"
	"testing"
)

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

// As systemd-escape --unescape --path says.
func TestPath(t *testing.T) {
	for name, want := range map[string]string{
		"-.mount": "/", "swapfile.swap": "/swapfile", `dev-disk-by\x2duuid-1.swap`: "/dev/disk/by-uuid/1", `var-a\x20b.c.swap`: "/var/a b.c",
		`\x2ea.swap`: "/.a", "": "", "--.swap": "", "a--b.swap": "", "-a.swap": "", "a-.swap": "", `a\x2.swap`: "", `a\y20.swap`: "", `a\x+1.swap`: "", `a\x00.swap`: "",
		"a-..-b.swap": "",
	} {
		if got, ok := Path(name); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, ok, want)
		}
	}
}

// FuzzPath: the name of a path has that path, and what has a path is the name of it.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "a b/.c", "-a-", `\x2d`, "a..b/../c", "ä"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p := path.Clean("/" + s); !strings.Contains(s, "\x00") {
			if got, ok := Path(OfPath(p) + ".swap"); !ok || got != p {
				t.Errorf("%q has the name %q, and that the path %q, %v", p, OfPath(p), got, ok)
			}
		}
		if p, ok := Path(s + ".swap"); ok && path.Clean(p) != p {
			t.Errorf("%q is the name of %q", s, p)
		}
	})
}
