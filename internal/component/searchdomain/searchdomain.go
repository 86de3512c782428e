// Package searchdomain makes a machine one of a domain: names without a domain are looked
// up there, and realmd enters the machine.
package searchdomain

import (
	"cmp"
	"strings"

	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/unitname"
)

// Names and paths.
const (
	// Unit enters the domain, once.
	Unit = "berth-realm-join.service"
	// PasswordFile is what realm(8) reads of its standard input.
	PasswordFile = paths.SettingsDir + "/realm-password"
	// Resolver is who looks names up, DropIn what it reads.
	Resolver = unitname.Resolved
	DropIn   = "/etc/systemd/resolved.conf.d/60-berth-search.conf"

	unitFile = "/etc/systemd/system/" + Unit
	// Keytab has the machine's own keys as one of a domain.
	Keytab = "/etc/krb5.keytab"
	// UserVariable tells the service who may add machines.
	UserVariable = "BERTH_REALM_USER"
)

// Settings are the domain, and who may add machines to it.
type Settings struct {
	Domain, User string
	Password     desired.Secret
	// Resolved: systemd-resolved looks names up.
	Resolved bool
	// Program is berth's own path; empty: packetfilter.Program.
	Program string
}

// Realm is the domain as Kerberos spells it.
func (s Settings) Realm() string { return strings.ToUpper(s.Domain) }

var domain = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// Complete says whether the settings are enough to enter a domain. Nothing of them may
// end a line.
func (s Settings) Complete() bool {
	return domain().MatchString(s.Domain) && s.User != "" && s.Password != "" &&
		!strings.ContainsAny(s.User+s.Password.Reveal(), "\r\n\x00")
}

// Resources are the resolver's domain and the unit that enters it, unless the machine's
// keytab says that it is in there. realmd and what it needs are the image's.
func Resources(s Settings) []desired.Resource {
	var out []desired.Resource
	join := &desired.Unit{Name: Unit, Enablement: desired.Enabled, Activation: desired.Started}
	if s.Resolved {
		out = append(out, plain(DropIn, unitfile.Text(unitfile.In("Resolve", "Domains", s.Domain))),
			&desired.Unit{Base: desired.Base{After: []desired.ID{desired.FileID(DropIn)}}, Name: Resolver, ReloadTriggers: []string{DropIn}})
		join.After = append(join.After, desired.UnitID(Resolver))
	}
	password := &desired.File{Path: PasswordFile, Content: desired.SecretBytes([]byte(s.Password.Reveal() + "\n")), Mode: 0o600, Life: desired.Managed}
	unit := plain(unitFile, unitfile.Text(
		unitfile.In("Unit", "Description", "Enter the domain "+s.Domain, "Wants", "network-online.target", "After", "network-online.target "+Resolver),
		unitfile.In("Service", "Type", "oneshot", "RemainAfterExit", "yes", "Environment", unitfile.Environment(UserVariable, s.User+"@"+s.Realm()),
			"ExecStart", unitfile.Word(cmp.Or(s.Program, packetfilter.Program))+" node realm-join "+s.Realm(), "TimeoutStartSec", "3min"),
		unitfile.In("Install", "WantedBy", "multi-user.target")))
	join.After = append(join.After, password.ID(), unit.ID())
	return append(out, password, unit, join)
}

func plain(p, text string) *desired.File {
	return &desired.File{Path: p, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}
