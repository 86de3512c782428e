// Package effect decorates a host.Host: Record writes down what was done to it,
// Inject makes effects fail or stops everything at one of them.
//
// An effect is one call that changes the machine: each changing method of
// host.FS, each Write, Chmod, Chown and Sync of a file, each job, reload and
// reset of systemd, each Run, Mount and Unmount, each replacement and deletion of
// a table of the packet filter. Reading, Close and locks are none. Effects are
// numbered from 1 in the order in which they begin.
package effect

import (
	"fmt"
	"strings"
)

// Effect is one change.
type Effect struct {
	// N is its number, from 1.
	N int
	// Op is create, write, chmod, chown, sync, mkdir, symlink, link, rename,
	// remove, xattr, value, start, stop, restart, reload, daemon-reload, reset-failed, mount,
	// unmount, replace-table, delete-table or run.
	Op string
	// Target is the path, for link and rename the new one, the unit, the table or the
	// program.
	Target string
	// Detail is what else tells effects apart: the old name, a link's target, the
	// attribute's name, the mode, the owner, the length written, the arguments, the
	// file system's type.
	Detail string
}

// String is one line: "12 rename /etc/a (/etc/.berth.a.new)".
func (e Effect) String() string {
	s := fmt.Sprintf("%d %s %s", e.N, e.Op, e.Target)
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return strings.TrimSpace(s)
}

// around sees every effect: do makes it happen.
type around func(e Effect, do func() error) error

// before sees every reading before it happens.
type before func() error
