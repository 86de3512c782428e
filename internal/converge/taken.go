package converge

import (
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// gone says that berth took away what was there.
func (e entry) gone() bool { return e.Sum == absent }

// takeAway plans that a link goes which keeps a unit from being what is wanted.
// One that others made comes back when nothing asks for its absence any more,
// unless it would not outlive a boot.
func (up *unitPlan) takeAway(name string, info *host.Info, verb Verb, reason string) error {
	q := &put{kind: putDelete, path: name}
	if err := up.mayPut(q, info); err != nil {
		return err
	}
	q.foreign = q.foreign && !strings.HasPrefix(name, "/run/")
	q.forget = !q.foreign && len(q.from) == 0 && up.led.Entries[name].Original == ""
	up.t.puts = append(up.t.puts, q)
	up.t.act(verb, reason+q.takenOver(), DisruptNone)
	return nil
}

// takenFor are the names that berth took away for a unit: a mask, and of one that
// is not to start at boot the links that made it.
func (p *planning) takenFor(u *desired.Unit) []string {
	var out []string
	for name, e := range p.led.Entries {
		if !e.gone() || path.Base(name) != u.Name {
			continue
		}
		if path.Dir(name) == adminUnits || u.Enablement == desired.Disabled {
			out = append(out, name)
		}
	}
	return out
}
