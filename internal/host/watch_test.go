package host

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEventsCoalesce: however much is posted, nobody waits, and what waits is told
// once and in order.
func TestEventsCoalesce(t *testing.T) {
	q := NewEvents()
	for range 1000 {
		q.Post(Event{Name: "/a"})
		q.Post(Event{Unit: "b.service"})
	}
	q.Post(Event{Missed: true})
	ctx, cancel := context.WithCancel(t.Context())
	out := q.Deliver(ctx)
	var got []Event
	for range 3 {
		got = append(got, <-out)
	}
	if diff := cmp.Diff([]Event{{Name: "/a"}, {Unit: "b.service"}, {Missed: true}}, got); diff != "" {
		t.Error(diff)
	}
	q.Post(Event{Name: "/a"})
	if e := <-out; e.Name != "/a" {
		t.Errorf("told %+v", e)
	}
	cancel()
	if e, more := <-out; more {
		t.Errorf("after the end %+v", e)
	}
}

func TestEventsFromMany(t *testing.T) {
	q := NewEvents()
	out := q.Deliver(t.Context())
	for i := range 8 {
		go func() {
			for j := range 50 {
				q.Post(Event{Name: fmt.Sprintf("/%d/%d", i, j)})
			}
		}()
	}
	seen := map[Event]bool{}
	for range 8 * 50 {
		seen[<-out] = true
	}
	if len(seen) != 8*50 {
		t.Errorf("%d different events", len(seen))
	}
}
