package provision

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// asking counts the questions about units, each of which takes some time.
type asking struct {
	host.Host
	asked int
	err   error
}

func (a *asking) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	a.asked++
	time.Sleep(time.Millisecond)
	if a.err != nil {
		return host.UnitStatus{}, a.err
	}
	return a.Host.Unit(ctx, name)
}

// An early answer is for one plan, for the unit that it is about, for a short time, and only if
// it is one.
func TestUnitAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &asking{Host: memory.New()}
		var a UnitAhead
		take := func(name string) bool {
			st, ok := a.Take(t.Context(), name)
			return ok && st.LoadState == "not-found"
		}
		if take(containerd.Unit) {
			t.Error("an answer without a question")
		}
		a.Ask(t.Context(), h, containerd.Unit)
		if take("other.service") {
			t.Error("an answer about another unit")
		}
		if !take(containerd.Unit) || h.asked != 1 {
			t.Errorf("no answer to %d questions", h.asked)
		}
		if take(containerd.Unit) {
			t.Error("an answer for a second plan")
		}
		a.Ask(t.Context(), h, containerd.Unit)
		time.Sleep(freshUnit + time.Second)
		synctest.Wait() // that question has ended
		if take(containerd.Unit) {
			t.Error("an answer of long ago")
		}
		h.err = errors.New("no bus")
		a.Ask(t.Context(), h, containerd.Unit)
		if take(containerd.Unit) {
			t.Error("an answer that is an error")
		}
	})
}
