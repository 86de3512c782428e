package reconcile

import (
	"fmt"
	"slices"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// kinds are what documents of an owner are called.
var kinds = map[desired.Owner]string{
	desired.OwnerOSC: "an OperatingSystemConfig", desired.OwnerAKS: "an AKS document", desired.OwnerNode: "a NodeConfig",
}

// ownerOf makes a document's owner the one whose documents the machine has, where it has
// none yet. other is the document's owner where it has another one's, or what such a one has
// left half-way.
func (r *Reconciler) ownerOf(d *Document) (other desired.Owner, err error) {
	owner := r.o.Opener.Owner(d)
	switch {
	case owner == r.owner, !slices.Contains(r.o.Owners, owner): // whoever opens it refuses that
		return "", nil
	case r.current != nil, r.owner == r.record.Owner && r.holds(r.owner):
		return owner, nil
	}
	r.owner, r.seenGood = owner, known{}
	r.good, err = r.keptNow()
	return "", err
}

// noteOwner notes on the disk whose the documents are, before the first thing of one is there: a
// run that is cut off leaves nothing that is nobody's. before is what was noted.
func (r *Reconciler) noteOwner() (before desired.Owner, err error) {
	before = r.saved.Owner
	if before == r.owner {
		return before, nil
	}
	next := r.record
	next.Owner = r.owner
	return before, r.change(next)
}

// unnoteOwner takes that back after a document of which nothing is on the machine.
func (r *Reconciler) unnoteOwner(before desired.Owner) error {
	if before == r.record.Owner || r.holds(r.owner) {
		return nil
	}
	next := r.record
	next.Owner = before
	return r.change(next)
}

// part forgets an owner whose documents come from elsewhere now: what they asked for is that
// source's.
func (r *Reconciler) part() error {
	if r.record.Owner == "" {
		return nil
	}
	next := r.record.forgiven()
	next.Owner, next.Sum, next.Checksum = "", "", ""
	return r.change(next)
}

// holds says whether something on the machine is an owner's, as far as that can be told.
func (r *Reconciler) holds(owner desired.Owner) bool {
	led, err := (&ledger.Reader{}).Load(r.o.Host)
	if err != nil || led.Owed != nil && led.Owed.Owner == owner {
		return true
	}
	for _, e := range led.Entries {
		if e.Owns(owner) {
			return true
		}
	}
	return false
}

// kindChanged refuses a document of another kind: what the one in force asked for would be
// left on the machine, kept by nobody.
func kindChanged(have, want desired.Owner) error {
	return &RefusedError{&exitcode.Error{Number: exitcode.Internal,
		Err: fmt.Errorf("the document is %s, and what %s asked for is on this machine", kinds[want], kinds[have]),
		Remedy: "Let the source hold " + kinds[have] + " again. To change over, run berth agent reset and berth agent bootstrap: " +
			"the machine is then as it was before, and takes the new document."}}
}

// OwnerOf is whose the documents in a record are; first is whose they are where the record
// does not tell.
func OwnerOf(h host.FS, at string, first desired.Owner) (desired.Owner, error) {
	r, err := loadRecord(h, at)
	if r.Owner == "" {
		return first, err
	}
	return r.Owner, err
}
