package kind

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// OwnedElsewhereError is a path, or another id, of which another contract wants
// something else.
type OwnedElsewhereError struct {
	Path  string
	Owner desired.Owner
	Other desired.Owner
	// Part: one of them wants a part of the file, the other all of it.
	Part bool
}

// Error names both owners.
func (e *OwnedElsewhereError) Error() string {
	return fmt.Sprintf("%s belongs to the %s contract, and the %s contract wants it otherwise", e.Path, e.Other, e.Owner)
}

// Hint says what the choice is.
func (e *OwnedElsewhereError) Hint() string {
	if e.Part {
		return "Take it out of one of the two documents: one has all of the file, the other a part of it."
	}
	return fmt.Sprintf("Take it out of one of the two documents, or run this one with --take-over: then %s is the %s contract's.", e.Path, e.Owner)
}

// Claims decides whose a name or another id is: this owner's, if nobody wants it otherwise.
type Claims struct {
	m        *Machine
	owner    desired.Owner
	takeOver bool
	// parts are the files of which other owners have a part.
	parts func() map[string]desired.Owner
}

func claims(o Options, m *Machine, owner desired.Owner) Claims {
	return Claims{m: m, owner: owner, takeOver: o.TakeOver, parts: sync.OnceValue(func() map[string]desired.Owner { return partsOf(m.Ledger, owner) })}
}

// MayChange decides whose a path is: what another contract wants otherwise is
// refused or taken over, the original of what is foreign is kept.
func (c *Claims) MayChange(q *Change, info *host.Info) error {
	e := c.m.Ledger.Entries[q.Path]
	if other, ok := c.parts()[q.Path]; ok && (q.Temporary() || q.Type == ledger.Gone) {
		return &OwnedElsewhereError{Path: q.Path, Owner: c.owner, Other: other, Part: true}
	}
	if others := e.Others(c.owner); len(others) > 0 && !q.agrees(e, c.owner) {
		if !c.takeOver {
			return &OwnedElsewhereError{Path: q.Path, Owner: c.owner, Other: others[0]}
		}
		q.From = others
	}
	q.Seen = info
	if info == nil {
		return nil
	}
	var err error
	q.Foreign, err = c.foreign(q)
	return err
}

// Take plans a change of a name, if this owner may.
func (c *Claims) Take(t *Task, q *Change, info *host.Info, verb Verb, reason string) error {
	if err := c.MayChange(q, info); err != nil {
		return err
	}
	t.Changes = append(t.Changes, q)
	t.Act(verb, reason+q.TakenOver(), DisruptNone)
	return nil
}

// partsOf are the files of which others than an owner have a part.
func partsOf(l *ledger.Ledger, owner desired.Owner) map[string]desired.Owner {
	parts := map[string]desired.Owner{}
	for id, e := range l.Entries {
		name, isPart := strings.CutPrefix(id, "block:")
		if others := e.Others(owner); isPart && len(others) > 0 {
			name, _, _ = strings.Cut(name, "#")
			parts[name] = others[0]
		}
	}
	return parts
}

// foreign says whether what a change replaces is nobody's here, or berth's but for
// the content. What berth wrote before its state was lost is no original.
func (c *Claims) foreign(q *Change) (bool, error) {
	e, ok := c.m.Ledger.Entries[q.Path]
	switch {
	case q.Own && (!ok || e.Adopted):
		return false, nil
	case !ok:
		wrote, err := c.m.Wrote(q.Path, q.Seen)
		return !wrote, err
	}
	return e.InPlace() && !q.InPlace() || e.Adopted && !q.adoptedAs(e), nil
}

// Entry is the ledger's entry of a path when the change has come about.
func (c *Claims) Entry(q *Change, was *ledger.Standing) ledger.Entry {
	e := c.m.Ledger.Entries[q.Path]
	if len(q.From) > 0 {
		e.Owners = nil
	}
	e, _ = e.Join(c.owner, q.Asked)
	e.Adopted = e.Adopted && q.adoptedAs(e)
	if was != nil {
		e.Was = was
	}
	e.Applied, e.Seed, e.Parent, e.Mark, e.Seen, e.Held = q.Standing(), q.Seed, q.Parent, "", "", nil
	return e
}

// Original is what has to be remembered of what a foreign change replaces, without
// the content. Where only mode and owner were berth's so far, the first ones count.
func (c *Claims) Original(q *Change) *ledger.Standing {
	was := ledger.StandingAt(q.Seen)
	if q.InPlace() {
		was.Type = q.Type
	}
	if e := c.m.Ledger.Entries[q.Path]; e.InPlace() {
		was.Mode, was.UID, was.GID = e.Was.Mode, e.Was.UID, e.Was.GID
	}
	return was
}

// ClaimLive decides whose an id is that is no path, and enters it: agree says
// whether two owners can both have what they ask for. was is the state now.
func (c *Claims) ClaimLive(t *Task, id, asked, was string, agree func(a, b string) bool) error {
	e, known := c.m.Ledger.Entries[id]
	claim := Claim{ID: id, Asked: asked}
	for _, o := range e.Others(c.owner) {
		if agree(e.Owners[o], asked) {
			continue
		}
		if !c.takeOver {
			return &OwnedElsewhereError{Path: id, Owner: c.owner, Other: o}
		}
		claim.From = append(claim.From, o)
	}
	if have, ok := e.Owners[c.owner]; ok && have == asked && len(claim.From) == 0 && len(e.Earlier) == 0 {
		return nil
	}
	if !known {
		claim.Was = was
	}
	t.Claims = append(t.Claims, claim)
	return nil
}

// LiveEntry is the ledger's entry of a claim.
func (c *Claims) LiveEntry(of Claim) ledger.Entry {
	e, known := c.m.Ledger.Entries[of.ID]
	for _, o := range of.From {
		e = e.Leave(o)
	}
	e, _ = e.Join(c.owner, of.Asked)
	e.Applied, e.Earlier = ledger.Standing{Type: ledger.Live, Value: cmp.Or(of.Applied, of.Asked)}, nil
	if !known || of.Again {
		e.Was = &ledger.Standing{Type: ledger.Live, Value: of.Was}
	}
	return e
}

// Equal is the agreement of kinds of which only one value can be in force.
func Equal(a, b string) bool { return a == b }
