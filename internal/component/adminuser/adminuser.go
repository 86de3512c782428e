// Package adminuser keeps the passwords of the machine's administrators from expiring:
// nobody could log in any more to see what is wrong.
package adminuser

import (
	"cmp"
	"strings"

	"github.com/berth-dev/berth/internal/component/packetfilter"
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

// Resources is the unit for users: of those whose passwords would expire it changes that,
// and gives back what was there before when it goes, as it does at each end of the system. A
// user who is not there, and a machine without chage(1), are no failure of it. program is
// berth's own path; empty: packetfilter.Program.
func Resources(program string, users ...string) []desired.Resource {
	verb := "-" + unitfile.Word(cmp.Or(program, packetfilter.Program)) + " node password-age "
	names := strings.Join(users, " ")
	file := &desired.File{Path: unitFile, Mode: 0o644, Life: desired.Managed, Content: desired.Text(unitfile.Text(
		unitfile.In("Unit", "Description", "Let passwords not expire: "+names, "After", "cloud-init.service cloud-init-network.service"),
		unitfile.In("Service", "Type", "oneshot", "RemainAfterExit", "yes", "ExecStart", verb+names, "ExecStop", verb+"--back"),
		unitfile.In("Install", "WantedBy", "multi-user.target")))}
	return []desired.Resource{file, &desired.Unit{
		Base: desired.Base{After: []desired.ID{file.ID()}}, Name: Unit, Enablement: desired.Enabled, Activation: desired.Started,
	}}
}
