// Package adminuser keeps the passwords of the machine's administrators from expiring:
// nobody could log in any more to see what is wrong.
package adminuser

import (
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// Unit says at each boot that no password expires: users are made by others, after
// berth or before it.
const Unit = "berth-admin-user.service"

const unitFile = "/etc/systemd/system/" + Unit

// name is what useradd(8) takes, of Debian and of the Fedora family.
var name = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,31}$`)

// IsName says whether a text can be a user's name.
func IsName(text string) bool { return name().MatchString(text) }

// Resources is the unit for root and another user. A user who is not there, and a
// machine without chage(1), are no failure of it. What it has set stays when it goes.
func Resources(user string) []desired.Resource {
	var runs []*unitfile.Setting
	for _, u := range []string{user, "root"} {
		runs = append(runs, unitfile.In("Service", "ExecStart", "-/usr/bin/chage --inactive -1 --mindays 0 --maxdays 99999 --expiredate -1 "+u)...)
	}
	file := &desired.File{Path: unitFile, Mode: 0o644, Life: desired.Managed, Content: desired.Text(unitfile.Text(
		unitfile.In("Unit", "Description", "Let the passwords of "+user+" and root not expire", "After", "cloud-init.service cloud-init-network.service"),
		unitfile.In("Service", "Type", "oneshot", "RemainAfterExit", "yes"), runs,
		unitfile.In("Install", "WantedBy", "multi-user.target")))}
	return []desired.Resource{file, &desired.Unit{
		Base: desired.Base{After: []desired.ID{file.ID()}}, Name: Unit, Enablement: desired.Enabled, Activation: desired.Started,
	}}
}
