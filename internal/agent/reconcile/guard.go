package reconcile

import (
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// guard ends a fight with another writer: what was repaired too often is left alone
// for a while.
type guard struct {
	repairs       int
	within, pause time.Duration
	at            map[desired.ID][]time.Time
	until         map[desired.ID]time.Time
}

func newGuard(repairs int, within, pause time.Duration) *guard {
	return &guard{repairs: repairs, within: within, pause: pause, at: map[desired.ID][]time.Time{}, until: map[desired.ID]time.Time{}}
}

// stands says whether the guard holds repairs of a resource back.
func (g *guard) stands(id desired.ID, now time.Time) bool { return now.Before(g.until[id]) }

// rest is the time until the first resource may be repaired again; 0 where none waits.
func (g *guard) rest(now time.Time) time.Duration {
	var out time.Duration
	for id, until := range g.until {
		left := until.Sub(now)
		switch {
		case left <= 0:
			delete(g.until, id)
		case out == 0 || left < out:
			out = left
		}
	}
	return out
}

// note counts a repair, or a try of one. It says whether it was one too many.
func (g *guard) note(id desired.ID, now time.Time) bool {
	recent := slices.DeleteFunc(g.at[id], func(t time.Time) bool { return now.Sub(t) > g.within })
	g.at[id] = append(recent, now)
	if len(g.at[id]) < g.repairs || g.stands(id, now) {
		return false
	}
	delete(g.at, id)
	g.until[id] = now.Add(g.pause)
	return true
}
