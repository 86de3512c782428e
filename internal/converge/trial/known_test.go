package trial

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// reading counts reads of the kept contract.
type reading struct {
	host.Host
	reads int
}

func (r *reading) ReadFile(p string) ([]byte, error) {
	if p == goodPath(desired.OwnerOSC) {
		r.reads++
	}
	return r.Host.ReadFile(p)
}

// TestKnown: the last good contract is read once, and again as soon as it is another.
func TestKnown(t *testing.T) {
	m := memory.New()
	h := &reading{Host: m}
	mine, others := &Contract{Document: []byte("mine")}, &Contract{Document: []byte("else")}
	var k Known
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	look := func(wantSame bool, wantReads int) *Contract {
		t.Helper()
		h.reads = 0
		other, same, err := k.Good(h, desired.OwnerOSC, mine)
		if err != nil || same != wantSame || h.reads != wantReads {
			t.Errorf("same %v, %d reads, %v; want %v and %d", same, h.reads, err, wantSame, wantReads)
		}
		return other
	}
	if look(false, 1) != nil {
		t.Error("there is one before any is kept")
	}
	must(Keep(m, desired.OwnerOSC, mine))
	look(true, 1) // so new that a change in the same tick would not show
	must(m.Sleep(t.Context(), time.Second))
	look(true, 1)
	look(true, 0)
	must(Keep(m, desired.OwnerOSC, others))
	if other := look(false, 1); other == nil || !other.Same(others) {
		t.Errorf("another's: %v", other)
	}
	must(Keep(m, desired.OwnerOSC, mine))
	must(m.Sleep(t.Context(), time.Second))
	look(true, 1)
	must(Forget(m, desired.OwnerOSC))
	if look(false, 1) != nil {
		t.Error("what was forgotten is still there")
	}
}
