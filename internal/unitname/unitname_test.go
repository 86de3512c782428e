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
