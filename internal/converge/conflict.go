package converge

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// mayPut settles whose a path is: what another contract wants otherwise is
// refused or taken over, the original of what is foreign is kept.
func (p *planning) mayPut(q *put, info *host.Info) error {
	e := p.led.Entries[q.path]
	if others := p.led.others(q.path, p.st.Owner); len(others) > 0 && !e.agrees(q) {
		if !p.opt.TakeOver {
			return &OwnedElsewhereError{Path: q.path, Owner: p.st.Owner, Other: others[0]}
		}
		q.from = others
	}
	q.seen = info
	q.foreign = info != nil && p.led.foreign(q)
	q.modeWas = q.foreign && e.InPlace
	return nil
}

// others are the owners of a path besides o.
func (l *ledger) others(path string, o desired.Owner) []desired.Owner {
	return slices.DeleteFunc(slices.Clone(l.Entries[path].Owners), func(other desired.Owner) bool { return other == o })
}

// agrees says whether a put makes of a path what its owners wanted of it: then it
// repairs what somebody else changed.
func (e entry) agrees(p *put) bool {
	attributes := e.Attributes == "" || e.Attributes == p.attributes()
	switch {
	case p.kind == putDelete:
		return e.gone()
	case p.kind == putDir:
		return e.Dir && (e.Parent || attributes)
	case p.kind == putAttributes:
		return attributes
	case p.kind == putLink:
		return e.leadsTo(p)
	case p.asked != "":
		return e.Asked == p.asked && (attributes || e.Adopted)
	}
	return e.Sum != "" && e.Sum == p.sum() && attributes
}

// leadsTo says whether a link is the one that a put makes. One that enables a unit
// may take any way to it.
func (e entry) leadsTo(p *put) bool {
	target, isLink := strings.CutPrefix(e.Sum, "link:")
	return isLink && (target == p.target || p.late && path.Base(target) == path.Base(p.target))
}

// takenOver is what a reason says of other owners.
func (p *put) takenOver() string {
	if len(p.from) == 0 {
		return ""
	}
	names := make([]string, len(p.from))
	for i, o := range p.from {
		names[i] = string(o)
	}
	return "; taken over from " + strings.Join(names, " and ")
}

// askedOf is what tells two wishes for a resource apart where its content does
// not. URLs may carry secrets: only their sum is remembered.
func askedOf(r desired.Resource) string {
	switch r := r.(type) {
	case *desired.Artifact:
		return cmp.Or(r.Version, r.SHA256, desired.Text(strings.Join(r.URLs, "\n")).Sum())
	case *desired.ServingCertificate:
		return strings.Join(r.Names, " ")
	}
	return ""
}

// refuse plans nothing of a resource but that it can't be had.
func (t *task) refuse(e *OwnedElsewhereError) {
	*t = task{id: t.id, base: t.base}
	t.block(VerbUpdate, "the "+string(e.Other)+" contract wants it otherwise", "--take-over moves it", e)
}

// OwnedElsewhereError is a path of which another contract wants something else.
type OwnedElsewhereError struct {
	Path  string
	Owner desired.Owner
	Other desired.Owner
}

// Error names both owners.
func (e *OwnedElsewhereError) Error() string {
	return fmt.Sprintf("%s belongs to the %s contract, and the %s contract wants it otherwise", e.Path, e.Other, e.Owner)
}

// Hint says what the choice is.
func (e *OwnedElsewhereError) Hint() string {
	return fmt.Sprintf("Take it out of one of the two documents, or run this one with --take-over: then %s is the %s contract's.", e.Path, e.Owner)
}
