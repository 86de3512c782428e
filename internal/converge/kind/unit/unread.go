package unit

import (
	"regexp"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// unread are expressions of what of a trigger a running unit has no use for; none where it
// reads all of it. What the stamp has is compared in the stamp's way, whoever made it.
func (p *planner) unread(at string) []string {
	if p.last.Unread != nil && p.last.revision(at) != "" {
		return p.last.Unread[at]
	}
	return p.useless(at)
}

// useless are the expressions for a new stamp. What a unit has no use for is so for all who
// name the file.
func (p *planner) useless(at string) []string {
	for name, expressions := range p.u.Unread {
		if p.Real(name) == at {
			return expressions
		}
	}
	return p.last.Unread[at]
}

// without leaves text out.
func without(data []byte, expressions []string) []byte {
	return regexp.MustCompile("(?:"+strings.Join(expressions, ")|(?:")+")").ReplaceAll(data, nil)
}

// leaving are the expressions of those paths that have any.
func leaving(of func(at string) []string, paths ...map[string]string) map[string][]string {
	out := map[string][]string{}
	for _, part := range paths {
		for at := range part {
			if expressions := of(at); len(expressions) > 0 {
				out[at] = expressions
			}
		}
	}
	return out
}

// revision identifies what the unit reads of a path now, in the way in which last does
// where that is known.
func (p *planner) revision(at, last string, unread []string) (string, error) {
	if len(unread) == 0 {
		return revision(p.View, at, last)
	}
	info, err := p.Lstat(at)
	if err != nil || info == nil || !info.IsRegular() {
		return revision(p.View, at, last)
	}
	data, err := p.Host.ReadFile(at)
	return desired.Bytes(without(data, unread)).Sum(), err
}

// revisions identifies what the unit reads of several paths now, for a new stamp.
func (p *planner) revisions(paths []string) (map[string]string, error) {
	out := map[string]string{}
	for _, at := range paths {
		t, err := p.revision(at, "", p.useless(at))
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
	if len(unread) == 0 || q.Type != ledger.File || q.Prepared || q.Stored != "" {
		return q.Revision()
	}
	return desired.Bytes(without(q.Content.Data(), unread)).Sum(), true
}

// immaterial says that the plan changes only what the unit does not read of a path.
func (p *planner) immaterial(at string) bool {
	if len(p.unread(at)) == 0 || !p.Changes(at) || p.Deletes(at) {
		return false
	}
	now, err := p.revision(at, p.last.revision(at), p.unread(at))
	if err != nil {
		return false
	}
	then, ok, err := p.future(at)
	return err == nil && ok && then == now
}
