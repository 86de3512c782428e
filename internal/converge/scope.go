package converge

import (
	"github.com/berth-dev/berth/internal/desired"
)

// Scope narrows a plan or an apply. The zero value is all of it.
type Scope struct {
	// IDs are the resources of the state that are looked at, with those without which
	// they can't be compared: what a unit reads when it starts, the directories above a
	// file. They are also what the owner asked for earlier and does no more, by path or
	// id of the ledger. nil is everything.
	IDs []desired.ID
	// Decide says what becomes of an action. A resource is one thing: of several
	// actions the strictest decision counts for all. Units follow from what is left.
	// nil does all.
	Decide func(Action) Decision
	// Ready is called when all is staged and nothing has changed yet: an error ends the run
	// there and leaves the machine as it was. It is called before each part of a run that has
	// two.
	Ready func() error
	// Live is called when all is done, all names are durable and all jobs of units are
	// through, but for two things: what was started has yet to stay up for a moment, and the
	// engine has yet to note that the run has ended, and with what contract. It is not called
	// where a trial or the API server is waited for besides, nor where nothing was to be done.
	Live func()
}

// Decision is what becomes of an action.
type Decision int

// The decisions, in order of strictness.
const (
	// Do it.
	Do Decision = iota
	// Report it: it stands in Plan.Reported.
	Report
	// Skip it without a word.
	Skip
)

// decide asks for each task that has actions what becomes of it, again where more
// have come since.
func (p *planner) decide() {
	if p.scope.Decide == nil {
		return
	}
	for _, t := range p.v.Tasks() {
		if len(t.Actions) == p.decided[t] {
			continue
		}
		worst := Do
		for _, a := range t.Actions {
			worst = max(worst, p.scope.Decide(a))
		}
		if worst != Do {
			p.v.Withhold(t, worst == Report)
		}
		p.decided[t] = len(t.Actions)
	}
}
