// Package upgrades says whether the distribution installs its security updates by
// itself.
package upgrades

import (
	"net/url"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

const (
	// AptFile is the published path of apt's own settings for it.
	AptFile = "/etc/apt/apt.conf.d/99periodic"
	// DnfTimer installs updates on the Fedora family.
	DnfTimer = "dnf-automatic-install.timer"
)

// aptTimers are what reads AptFile, once a day each.
var aptTimers = []string{"apt-daily.timer", "apt-daily-upgrade.timer"}

// Settings are what is wanted, and of what machine.
type Settings struct {
	// On: updates are installed; else neither they nor lists of packages are fetched.
	On bool
	// Apt: the machine has apt.
	Apt bool
	// HasUnit says whether the image's packages bring a unit.
	HasUnit func(name string) bool
}

// Known says whether the machine has anything that installs updates.
func (s Settings) Known() bool { return s.Apt || s.HasUnit(DnfTimer) }

// Resources are the settings and the timers that read them. Without updates the timers
// of apt stay as they are: they find that there is nothing to do.
func Resources(s Settings) []desired.Resource {
	var out []desired.Resource
	if s.Apt {
		out = append(out, &desired.File{Path: AptFile, Content: desired.Text(s.periodic()), Mode: 0o644, Life: desired.Managed})
	}
	for _, timer := range aptTimers {
		if s.Apt && s.On && s.HasUnit(timer) {
			out = append(out, &desired.Unit{Base: desired.Base{After: []desired.ID{desired.FileID(AptFile)}},
				Name: timer, Enablement: desired.Enabled, Activation: desired.Started})
		}
	}
	if !s.HasUnit(DnfTimer) {
		return out
	}
	u := &desired.Unit{Name: DnfTimer, Enablement: desired.Disabled, Activation: desired.Stopped}
	if s.On {
		u.Enablement, u.Activation = desired.Enabled, desired.Started
	}
	return append(out, u)
}

func (s Settings) periodic() string {
	days := map[bool]string{true: "1", false: "0"}[s.On]
	return "// Written by berth.\n" +
		"APT::Periodic::Update-Package-Lists \"" + days + "\";\n" +
		"APT::Periodic::Download-Upgradeable-Packages \"0\";\n" +
		"APT::Periodic::AutocleanInterval \"0\";\n" +
		"APT::Periodic::Unattended-Upgrade \"" + days + "\";\n"
}

// DepotFile names the mirror that a cloud has of Ubuntu's packages, beside the sources of
// the image.
const DepotFile = "/etc/apt/sources.list.d/berth-repo-depot.list"

// Depot is the mirror at an address for a release of Ubuntu; nil where apt can't read it.
func Depot(address, release string) desired.Resource {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsAny(address, " \t\r\n[]#") || release == "" {
		return nil
	}
	text := "# Written by berth.\n"
	for _, suite := range []string{"", "-updates", "-security"} {
		text += "deb " + strings.TrimRight(address, "/") + " " + release + suite + " main restricted universe multiverse\n"
	}
	return &desired.File{Path: DepotFile, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}
