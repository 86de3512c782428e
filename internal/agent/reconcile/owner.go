package reconcile

import (
	"fmt"
	"slices"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// kinds are what documents of an owner are called.
var kinds = map[desired.Owner]string{
	desired.OwnerOSC: "an OperatingSystemConfig", desired.OwnerAKS: "an AKS document", desired.OwnerNode: "a NodeConfig",
}

// ownerOf makes a document's owner the one whose documents the machine has, where it has
// none yet. other is the document's owner where it has another one's.
func (r *Reconciler) ownerOf(d *Document) (other desired.Owner, err error) {
	owner := r.o.Opener.Owner(d)
	switch {
	case owner == r.owner, !slices.Contains(r.o.Owners, owner): // whoever opens it refuses that
		return "", nil
	case r.current != nil:
		return owner, nil
	}
	r.owner, r.seenGood = owner, known{}
	r.good, err = r.keptNow()
	return "", err
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
