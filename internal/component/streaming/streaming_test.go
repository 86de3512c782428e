package streaming

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	st := golden.State(t, Resources(Settings{Triggers: []string{"/proxy"}}))
	if len(st.Resources) != 3 {
		t.Error(st.Resources)
	}
	for _, r := range st.Resources {
		if u := r.(*desired.Unit); !IsUnit(u.Name) || u.Activation != desired.Started || u.Enablement != desired.Enabled || !slices.Equal(u.Triggers, []string{"/proxy"}) {
			t.Errorf("%+v", u)
		}
	}
	if IsUnit("containerd.service") {
		t.Error("containerd is none of them")
	}
}

// The program of the image runs after the services that it has containerd ask, with the
// arguments that the published chain gives it.
func TestSetup(t *testing.T) {
	for program, command := range map[string]string{
		"/opt/acr/tools/mirror/setup.sh": "/opt/acr/tools/mirror/setup.sh aks",
		"/opt/acr/bin/acr-config":        "/opt/acr/bin/acr-config --enable-containerd azurecr.io",
	} {
		if !slices.Contains(Programs(), program) {
			t.Errorf("%s is not looked for", program)
		}
		st := golden.State(t, Resources(Settings{Setup: program, After: []desired.ID{}}))
		text := string(golden.File(t, st, setupFile).Content.Data())
		if !strings.Contains(text, "\nExecStart="+command+"\n") || !strings.Contains(text, "\nType=oneshot\nRemainAfterExit=yes\n") {
			t.Errorf("%s:\n%s", program, text)
		}
		u := st.Lookup(desired.UnitID(SetupUnit)).(*desired.Unit)
		for _, name := range Units() {
			if !slices.Contains(u.After, desired.UnitID(name)) || !strings.Contains(text, name) {
				t.Errorf("%s does not come after %s", SetupUnit, name)
			}
		}
		if !IsUnit(SetupUnit) || u.Activation != desired.Started || u.Enablement != desired.Enabled || !slices.Equal(u.Triggers, []string{program}) {
			t.Errorf("%+v", u)
		}
	}
	if Programs()[0] != "/opt/acr/tools/mirror/setup.sh" {
		t.Errorf("the newer program goes first: %v", Programs())
	}
}
