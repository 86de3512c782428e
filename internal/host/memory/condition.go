package memory

import (
	"strings"
	"time"
)

// test is a Condition…= or Assert…= setting.
type test struct {
	key   string
	holds func(n *inode) bool
}

var tests = []test{
	{key: "PathExists", holds: func(*inode) bool { return true }},
	{key: "PathIsDirectory", holds: func(n *inode) bool { return n.mode.IsDir() }},
	{key: "DirectoryNotEmpty", holds: func(n *inode) bool { return len(n.children) > 0 }},
	{key: "FileNotEmpty", holds: func(n *inode) bool { return n.mode.IsRegular() && len(n.content) > 0 }},
	{key: "FileIsExecutable", holds: func(n *inode) bool { return n.mode.IsRegular() && n.mode&0o111 != 0 }},
}

// tested evaluates the conditions or assertions of a unit that is to start and
// keeps the result.
func (h *Host) tested(u *unit, kind string, result *bool) bool {
	u.tested = h.now
	*result = h.met(u.def.settings, kind)
	h.systemd.told[u.name] = told{u.tested, u.condition, u.assert}
	return *result
}

// told is what a process learned of a unit's conditions and assertions.
type told struct {
	at                time.Time
	condition, assert bool
}

// met evaluates the conditions (kind "Condition") or assertions ("Assert") of a
// unit: all must hold, and of those marked "|" one.
func (h *Host) met(s settings, kind string) bool {
	triggers, triggered := 0, false
	for _, t := range tests {
		for _, v := range s["Unit."+kind+t.key] {
			v, trigger := strings.CutPrefix(v, "|")
			ok := h.holds(t, v)
			if !trigger && !ok {
				return false
			}
			if trigger {
				triggers++
				triggered = triggered || ok
			}
		}
	}
	return triggers == 0 || triggered
}

func (h *Host) holds(t test, v string) bool {
	p, negated := strings.CutPrefix(v, "!")
	n, err := h.follow(p, false)
	return (err == nil && t.holds(n)) != negated
}
