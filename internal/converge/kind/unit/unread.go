package unit

import (
	"regexp"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// unread matches what of a trigger a running unit has no use for; nil where it reads
// all of it.
func (p *planner) unread(at string) *regexp.Regexp {
	for name, expressions := range p.u.Unread {
		if p.Real(name) == at {
			return regexp.MustCompile("(?:" + strings.Join(expressions, ")|(?:") + ")")
		}
	}
	return nil
}

// revision identifies what the unit reads of a path now, in the way in which last does
// where that is known.
func (p *planner) revision(at, last string) (string, error) {
	unread := p.unread(at)
	if unread == nil {
		return revision(p.View, at, last)
	}
	info, err := p.Lstat(at)
	if err != nil || info == nil || !info.IsRegular() {
		return revision(p.View, at, last)
	}
	data, err := p.Host.ReadFile(at)
	return desired.Bytes(unread.ReplaceAll(data, nil)).Sum(), err
}

// revisions identifies what the unit reads of several paths now, for a new stamp.
func (p *planner) revisions(paths []string) (map[string]string, error) {
	out := map[string]string{}
	for _, at := range paths {
		t, err := p.revision(at, "")
		if err != nil {
			return nil, err
		}
		out[at] = t
	}
	return out, nil
}

// futureRevision identifies what the unit will read of a path.
func (p *planner) futureRevision(at string, q *kind.Change) (string, bool) {
	unread := p.unread(at)
	if unread == nil || q.Type != ledger.File || q.Prepared || q.Stored != "" {
		return q.Revision()
	}
	return desired.Bytes(unread.ReplaceAll(q.Content.Data(), nil)).Sum(), true
}

// immaterial says that the plan changes only what the unit does not read of a path.
func (p *planner) immaterial(at string) bool {
	if p.unread(at) == nil || !p.Changes(at) || p.Deletes(at) {
		return false
	}
	now, err := p.revision(at, p.last.revision(at))
	if err != nil {
		return false
	}
	then, ok, err := p.future(at)
	return err == nil && ok && then == now
}
