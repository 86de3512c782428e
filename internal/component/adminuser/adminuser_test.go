package adminuser

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
)

func TestResources(t *testing.T) {
	st := golden.State(t, Resources("/usr/bin/berth", "operator", "root"))
	text := string(golden.File(t, st, unitFile).Content.Data())
	for _, want := range []string{
		"ExecStart=-/usr/bin/berth node password-age operator root\n", "ExecStop=-/usr/bin/berth node password-age --back\n",
		"Type=oneshot\n", "WantedBy=multi-user.target\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestIsName(t *testing.T) {
	for name, want := range map[string]bool{"azureuser": true, "first.Last-2": true, "_x": true, "": false, "-x": false, "a b": false, "a;b": false, "$x": false, "%u": false} {
		if IsName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
