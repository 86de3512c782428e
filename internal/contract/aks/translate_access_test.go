package aks

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/adminuser"
	"github.com/berth-dev/berth/internal/component/motd"
	"github.com/berth-dev/berth/internal/desired"
)

func TestMessageThatIsNoBase64(t *testing.T) {
	cfg := sample(t, "full.json")
	cfg.MessageOfTheDay = "hello"
	st := translate(t, cfg, factsOf("full"))
	if st.Lookup(desired.FileID(motd.Path)) != nil {
		t.Error("a message that can not be read is shown")
	}
	note := desired.FieldNote{Path: "message_of_the_day", Reason: "it is no base64"}
	if !slices.Contains(st.Unused, note) {
		t.Errorf("unused are %v, which lack %v", st.Unused, note)
	}
}

// TestAdmins: passwords last of who is named and of root; where nobody is named, of those
// whose passwords would expire, and where there is none the machine has no unit for it.
func TestAdmins(t *testing.T) {
	for name, c := range map[string]struct {
		named    string
		expiring []string
		want     string
	}{
		"named":                {"operator", nil, "operator root"},
		"named, and another":   {"operator", []string{"azureuser"}, "operator root"},
		"nobody, none expires": {"", nil, ""},
		"nobody, one expires":  {"", []string{"azureuser"}, "azureuser"},
		"no name":              {"a b", []string{"azureuser"}, ""},
	} {
		cfg, f := sample(t, "minimal.json"), machine
		cfg.LinuxAdminUsername, f.Expiring = c.named, c.expiring
		unit, ok := translate(t, cfg, f).Lookup(desired.FileID("/etc/systemd/system/" + adminuser.Unit)).(*desired.File)
		switch {
		case ok != (c.want != ""):
			t.Errorf("%s: there is a unit: %v", name, ok)
		case ok && !strings.Contains(string(unit.Content.Data()), " node password-age "+c.want+"\n"):
			t.Errorf("%s: %s", name, unit.Content.Data())
		}
	}
}
