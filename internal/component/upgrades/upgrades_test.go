package upgrades

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	debian := func(name string) bool { return slices.Contains(aptTimers, name) }
	fedora := func(name string) bool { return name == DnfTimer }
	none := func(string) bool { return false }
	for name, c := range map[string]struct {
		s    Settings
		want map[string]string
		days string
	}{
		"apt on":   {Settings{true, true, debian}, map[string]string{"apt-daily.timer": "enabled started", "apt-daily-upgrade.timer": "enabled started"}, "1"},
		"apt off":  {Settings{false, true, debian}, nil, "0"},
		"no timer": {Settings{true, true, none}, nil, "1"},
		"dnf on":   {Settings{true, false, fedora}, map[string]string{DnfTimer: "enabled started"}, ""},
		"dnf off":  {Settings{false, false, fedora}, map[string]string{DnfTimer: "disabled stopped"}, ""},
		"neither":  {Settings{true, false, none}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.s.Known() != (name != "neither") {
				t.Error("known:", c.s.Known())
			}
			st := golden.State(t, Resources(c.s))
			var units map[string]string
			for _, r := range st.Resources {
				if u, ok := r.(*desired.Unit); ok {
					if units == nil {
						units = map[string]string{}
					}
					units[u.Name] = string(u.Enablement) + " " + string(u.Activation)
				}
			}
			if d := cmp.Diff(c.want, units); d != "" {
				t.Error(d)
			}
			if (c.days != "") != (st.Lookup(desired.FileID(AptFile)) != nil) {
				t.Fatal("apt's file:", st.Resources)
			}
			if c.days != "" && !strings.Contains(string(golden.File(t, st, AptFile).Content.Data()), `Unattended-Upgrade "`+c.days+`";`) {
				t.Error("apt's file:", string(golden.File(t, st, AptFile).Content.Data()))
			}
		})
	}
}

func TestDepot(t *testing.T) {
	f := golden.File(t, golden.State(t, []desired.Resource{Depot("https://depot.example/ubuntu/", "noble")}), DepotFile)
	want := "# Written by berth.\n"
	for _, suite := range []string{"noble", "noble-updates", "noble-security"} {
		want += "deb https://depot.example/ubuntu " + suite + " main restricted universe multiverse\n"
	}
	if d := cmp.Diff(want, string(f.Content.Data())); d != "" {
		t.Error(d)
	}
	for _, c := range [][2]string{{"https://depot.example/ubuntu", ""}, {"depot.example", "noble"}, {"https://depot.example/a b", "noble"}, {"", "noble"}, {"https://x/\ndeb", "noble"}} {
		if r := Depot(c[0], c[1]); r != nil {
			t.Errorf("%q: %v", c, r)
		}
	}
}
