package searchdomain

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	s := Settings{Domain: "corp.test", User: `o"brien 100%`, Password: "hunter2", Resolved: true, Program: "/usr/bin/berth"}
	st := golden.State(t, Resources(s))
	unit := string(golden.File(t, st, unitFile).Content.Data())
	for _, want := range []string{
		`Environment="BERTH_REALM_USER=o\"brien 100%%@CORP.TEST"` + "\n", "ExecStart=/usr/bin/berth node realm-join CORP.TEST\n",
	} {
		if !strings.Contains(unit, want) {
			t.Errorf("no %q in\n%s", want, unit)
		}
	}
	if f := golden.File(t, st, PasswordFile); !f.Content.IsSecret() || f.Mode != 0o600 || string(f.Content.Data()) != "hunter2\n" {
		t.Errorf("password: %s, mode %s", f.Content, f.Mode)
	}
	if text := string(golden.File(t, st, DropIn).Content.Data()); !strings.Contains(text, "[Resolve]\nDomains=corp.test\n") {
		t.Error(text)
	}
	if strings.Contains(unit, "hunter2") {
		t.Error("the password stands in the unit")
	}
	s.Resolved = false
	if st := golden.State(t, Resources(s)); st.Lookup(desired.UnitID(Resolver)) != nil || st.Lookup(desired.UnitID(Unit)) == nil {
		t.Error("without systemd-resolved:", st.Resources)
	}
}

func TestComplete(t *testing.T) {
	for name, c := range map[string]struct {
		s    Settings
		want bool
	}{
		"all":            {Settings{Domain: "corp.test", User: "u", Password: "p"}, true},
		"no user":        {Settings{Domain: "corp.test", Password: "p"}, false},
		"no password":    {Settings{Domain: "corp.test", User: "u"}, false},
		"no domain":      {Settings{User: "u", Password: "p"}, false},
		"odd domain":     {Settings{Domain: "corp test", User: "u", Password: "p"}, false},
		"two lines":      {Settings{Domain: "corp.test", User: "u", Password: "p\nq"}, false},
		"ends in a dash": {Settings{Domain: "corp-", User: "u", Password: "p"}, false},
	} {
		if got := c.s.Complete(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
