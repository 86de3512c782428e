package provision

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestTell: an application that takes its time tells what it does, as long as it
// holds the lock, and one that is done soon writes nothing.
func TestTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := memory.New()
		var doing atomic.Value
		doing.Store("")
		withdraw := Tell(h, "berth apply", time.Now(), func() string { return doing.Load().(string) })
		synctest.Wait()
		if _, ok := readProgress(h, applyPath); ok {
			t.Error("told at once")
		}
		time.Sleep(2 * progressEvery) // the directory of the lock is not there yet
		h.PutDir("/run/berth")
		unlock, err := h.Lock(t.Context(), ledger.LockPath, fmt.Sprintf("berth apply (pid %d)", os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"start unit:a.service", "restart unit:b.service"} {
			doing.Store(what)
			time.Sleep(2 * progressEvery)
			if p, ok := Applying(h); !ok || p.Doing != what || p.PID != os.Getpid() {
				t.Errorf("told %+v, %v; want %q", p, ok, what)
			}
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		if p, ok := Applying(h); ok {
			t.Errorf("goes on without its lock: %+v", p)
		}
		withdraw()
		withdraw()
		if _, ok := readProgress(h, applyPath); ok {
			t.Error("not withdrawn")
		}
	})
}

// TestWaitingIsNotTold: an application that waits for the lock leaves what its holder tells.
func TestWaitingIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := memory.New()
		h.PutDir("/run/berth")
		other := Progress{Command: "berth apply", PID: 7, Doing: "restart unit:kubelet.service"}
		if err := other.tell(h, applyPath); err != nil {
			t.Fatal(err)
		}
		unlock, err := h.Lock(t.Context(), ledger.LockPath, other.holder())
		if err != nil {
			t.Fatal(err)
		}
		withdraw := Tell(h, "berth apply", time.Now(), func() string { return "" })
		time.Sleep(2 * progressEvery)
		if p, ok := Applying(h); !ok || p != other {
			t.Errorf("told %+v, %v", p, ok)
		}
		withdraw()
		if p, ok := Applying(h); !ok || p != other {
			t.Errorf("after the wait: %+v, %v", p, ok)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
	})
}
