package agent

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/agent/leasetest"
	"github.com/berth-dev/berth/internal/agent/rollout"
)

// TestTurn: two machines of a pool, of which the second is told when its time has
// come, and neither waits in the call.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leasetest.New()
		var told atomic.Int32
		of := func(name string) *turn {
			return &turn{log: slog.New(slog.DiscardHandler), mine: func() { told.Add(1) }, turns: &rollout.Turns{Leases: s, Name: "pool", Holder: name}}
		}
		a, b := of("a"), of("b")
		acquire := func(u *turn, want bool) {
			t.Helper()
			if got := u.Acquire(t.Context()) != nil; got != want {
				t.Errorf("turn of %s: want %v", u.turns.Holder, want)
			}
			synctest.Wait()
		}
		acquire(a, false)
		acquire(a, true)
		acquire(b, false)
		acquire(b, false)
		if told.Load() != 1 {
			t.Errorf("told %d times", told.Load())
		}
		if err := a.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rollout.TurnFor)
		synctest.Wait()
		acquire(b, true)
		if err := a.Release(t.Context()); err != nil {
			t.Error(err)
		}
		s.Fail(errors.New("away"))
		if err := a.Release(t.Context()); err != nil {
			t.Errorf("gives on what it does not hold: %v", err)
		}
		if err := b.Release(t.Context()); err == nil {
			t.Error("not given on, and not said")
		}
		s.Fail(nil)
		writes := s.Writes()
		if err := b.Release(t.Context()); err != nil || s.Writes() == writes {
			t.Errorf("not given on the second time: %v", err)
		}
		acquire(b, false)
		acquire(b, true)
		acquire(a, false)
		if told.Load() != 3 {
			t.Errorf("told %d times", told.Load())
		}
	})
}

// TestATurnThatIsLostEnds: who works by it is told, and waits for it anew.
func TestATurnThatIsLostEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leasetest.New()
		told := 0
		u := &turn{log: slog.New(slog.DiscardHandler), mine: func() { told++ }, turns: &rollout.Turns{Leases: s, Name: "pool", Holder: "a"}}
		if u.Acquire(t.Context()) != nil {
			t.Error("at once")
		}
		synctest.Wait()
		held := u.Acquire(t.Context())
		time.Sleep(rollout.TurnFor) // it is renewed
		if held == nil || held.Err() != nil {
			t.Fatalf("held: %v", held)
		}
		s.Fail(errors.New("away"))
		time.Sleep(rollout.TurnFor)
		synctest.Wait()
		if held.Err() == nil || told != 2 {
			t.Errorf("it does not end, or is not told: told %d times", told)
		}
		s.Fail(nil)
		if u.Acquire(t.Context()) != nil {
			t.Error("it is held without being taken")
		}
		synctest.Wait()
		if again := u.Acquire(t.Context()); again == nil || again.Err() != nil || told != 3 {
			t.Errorf("taken again: %v, told %d times", again, told)
		}
		if err := u.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestTurnsGoWithTheSecret: the Leases of a pool are the Secret's that was seen last.
func TestTurnsGoWithTheSecret(t *testing.T) {
	a, s := begin(t, machineWith(configText)), leasetest.New()
	a.seeSecret(&core.Secret{ObjectMeta: meta.ObjectMeta{Name: "pool-a", UID: "u"}})
	turns := a.turns(s)
	turns.Follow = nil
	if err := turns.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := s.GetLease(t.Context(), Namespace, "pool-a")
	if err != nil || len(l.OwnerReferences) != 1 || l.OwnerReferences[0].Kind != "Secret" || l.OwnerReferences[0].UID != "u" {
		t.Errorf("%v, owned by %+v", err, l)
	}
}
