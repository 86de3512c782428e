// Package ssh switches the machine's SSH server off, or has it refuse public keys.
package ssh

import (
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/desired"
)

// Paths of the server's configuration.
const (
	Config    = "/etc/ssh/sshd_config"
	DropInDir = "/etc/ssh/sshd_config.d"
	// DropIn comes before those of others: the first word counts.
	DropIn = DropInDir + "/00-berth.conf"
)

// services and sockets are the units of a server, by all names that distributions
// have for them.
var (
	services = []string{"ssh.service", "sshd.service"}
	sockets  = []string{"ssh.socket", "sshd.socket"}
)

// IsUnit says whether a unit is one of the server's.
func IsUnit(name string) bool {
	return slices.Contains(services, name) || slices.Contains(sockets, name)
}

// Server is what the image has of one.
type Server struct {
	// Program is its path; empty: there is none.
	Program string
	// Includes says that its configuration begins with that of DropInDir.
	Includes bool
	// HasUnit says whether the image brings a unit.
	HasUnit func(name string) bool
}

func (s Server) units(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !s.HasUnit(n) })
}

// Off is a server that does not run and can't be started, by whatever name: its
// units are masked, sockets first, and stopped. Sessions that are open stay.
func Off(s Server) []desired.Resource {
	var out []desired.Resource
	var before []desired.ID
	for _, name := range s.units(slices.Concat(sockets, services)) {
		mask := &desired.Link{Path: path.Join("/etc/systemd/system", name), Target: "/dev/null"}
		unit := &desired.Unit{Base: desired.Base{After: append(slices.Clone(before), mask.ID())}, Name: name, Activation: desired.Stopped}
		before = append(before, unit.ID())
		out = append(out, mask, unit)
	}
	return out
}

// WithoutKeys is a server that refuses public keys: one line ahead of all others,
// read by the server before it counts, and compared with what is in force after
// that. A Match block of others may still say otherwise for those it names.
func WithoutKeys(s Server) []desired.Resource {
	if s.Program == "" {
		return nil
	}
	line, at := lines(s)
	proof := &desired.SSHD{Base: desired.Base{After: []desired.ID{line.ID()}}, Program: s.Program, Path: at,
		Settings: map[string]string{"pubkeyauthentication": "no"}, Units: s.units(services)}
	out := []desired.Resource{line, proof}
	for _, name := range proof.Units {
		out = append(out, &desired.Unit{Base: desired.Base{After: []desired.ID{proof.ID()}}, Name: name, ReloadTriggers: []string{at}})
	}
	return out
}

// lines are a file of berth's own where the server reads those, else a part of the
// server's configuration.
func lines(s Server) (desired.Resource, string) {
	const text = "PubkeyAuthentication no\n"
	if s.Includes {
		return &desired.File{Path: DropIn, Mode: 0o600, Life: desired.Managed, Content: desired.Text("# Written by berth.\n" + text)}, DropIn
	}
	return &desired.Block{Path: Config, Name: "keys", Lines: text, First: true, Mode: 0o600}, Config
}
