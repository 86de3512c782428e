package kind

import (
	"cmp"
	"encoding/hex"
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

// MayChange decides whose a path is: what another contract wants otherwise is
// refused or taken over, the original of what is foreign is kept.
func (v *View) MayChange(q *Change, info *host.Info) error {
	e := v.Ledger.Entries[q.Path]
	if other, ok := v.partsOf(q); ok {
		return &OwnedElsewhereError{Path: q.Path, Owner: v.State.Owner, Other: other, Part: true}
	}
	if others := e.Others(v.State.Owner); len(others) > 0 && !q.agrees(e, v.State.Owner) {
		if !v.TakeOver {
			return &OwnedElsewhereError{Path: q.Path, Owner: v.State.Owner, Other: others[0]}
		}
		q.From = others
	}
	q.Seen = info
	if info == nil {
		return nil
	}
	var err error
	q.Foreign, err = v.foreign(q)
	return err
}

// partsOf is an owner that has a part of the file which a change would replace.
func (v *View) partsOf(q *Change) (desired.Owner, bool) {
	if !q.Temporary() && q.Type != ledger.Gone {
		return "", false
	}
	parts := v.Shared("parts of others", func() any { return sync.OnceValue(v.othersParts) }).(func() map[string]desired.Owner)()
	other, ok := parts[q.Path]
	return other, ok
}

// othersParts are the files of which other owners have a part.
func (v *View) othersParts() map[string]desired.Owner {
	parts := map[string]desired.Owner{}
	for id, e := range v.Ledger.Entries {
		name, isPart := strings.CutPrefix(id, "block:")
		if others := e.Others(v.State.Owner); isPart && len(others) > 0 {
			name, _, _ = strings.Cut(name, "#")
			parts[name] = others[0]
		}
	}
	return parts
}

// foreign says whether what a change replaces is nobody's here, or berth's but for
// the content. What berth wrote before its state was lost is no original.
func (v *View) foreign(q *Change) (bool, error) {
	e, ok := v.Ledger.Entries[q.Path]
	switch {
	case q.Own && (!ok || e.Adopted):
		return false, nil
	case !ok:
		wrote, err := v.Wrote(q.Path, q.Seen)
		return !wrote, err
	}
	return e.InPlace() && !q.InPlace() || e.Adopted && !q.adoptedAs(e), nil
}

// Wrote says whether a file holds still what berth wrote into it, by the file's own
// attribute: of what the ledger does not know, since all of it was lost.
func (v *View) Wrote(path string, info *host.Info) (bool, error) {
	if !info.IsRegular() {
		return false, nil
	}
	attributes, err := v.Host.Xattrs(path)
	if err != nil {
		return false, err
	}
	written, ok := attributes[host.ProvenanceName]
	if !ok {
		return false, nil
	}
	sum, err := v.Digest(path, info)
	return sum == hex.EncodeToString(written), err
}

// Entry is the ledger's entry of a path when the change has come about.
func (v *View) Entry(q *Change, was *ledger.Standing) ledger.Entry {
	e := v.Ledger.Entries[q.Path]
	if len(q.From) > 0 {
		e.Owners = nil
	}
	e, _ = e.Join(v.State.Owner, q.Asked)
	e.Adopted = e.Adopted && q.adoptedAs(e)
	if was != nil {
		e.Was = was
	}
	e.Applied, e.Seed, e.Parent, e.Mark, e.Seen, e.Held = q.Standing(), q.Seed, q.Parent, "", "", nil
	return e
}

// Original is what has to be remembered of what a foreign change replaces, without
// the content. Where only mode and owner were berth's so far, the first ones count.
func (v *View) Original(q *Change) *ledger.Standing {
	was := ledger.StandingAt(q.Seen)
	if q.InPlace() {
		was.Type = q.Type
	}
	if e := v.Ledger.Entries[q.Path]; e.InPlace() {
		was.Mode, was.UID, was.GID = e.Was.Mode, e.Was.UID, e.Was.GID
	}
	return was
}

// ClaimLive decides whose an id is that is no path, and enters it: agree says
// whether two owners can both have what they ask for. was is the state now.
func (v *View) ClaimLive(t *Task, id, asked, was string, agree func(a, b string) bool) error {
	e, known := v.Ledger.Entries[id]
	c := Claim{ID: id, Asked: asked}
	for _, o := range e.Others(v.State.Owner) {
		if agree(e.Owners[o], asked) {
			continue
		}
		if !v.TakeOver {
			return &OwnedElsewhereError{Path: id, Owner: v.State.Owner, Other: o}
		}
		c.From = append(c.From, o)
	}
	if have, ok := e.Owners[v.State.Owner]; ok && have == asked && len(c.From) == 0 && len(e.Earlier) == 0 {
		return nil
	}
	if !known {
		c.Was = was
	}
	t.Claims = append(t.Claims, c)
	return nil
}

// LiveEntry is the ledger's entry of a claim.
func (v *View) LiveEntry(c Claim) ledger.Entry {
	e, known := v.Ledger.Entries[c.ID]
	for _, o := range c.From {
		e = e.Leave(o)
	}
	e, _ = e.Join(v.State.Owner, c.Asked)
	e.Applied, e.Earlier = ledger.Standing{Type: ledger.Live, Value: cmp.Or(c.Applied, c.Asked)}, nil
	if !known || c.Again {
		e.Was = &ledger.Standing{Type: ledger.Live, Value: c.Was}
	}
	return e
}

// Equal is the agreement of kinds of which only one value can be in force.
func Equal(a, b string) bool { return a == b }
