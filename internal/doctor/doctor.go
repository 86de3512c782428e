// Package doctor looks at a machine that is to become a node, or is one, and says what
// stands in the way, with a remedy: named checks that run at once, each with its own
// end, and change nothing. What can't be known is said to be unknown.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/converge"
)

// Status is what came of a check.
type Status string

// What may come of a check.
const (
	OK      Status = "ok"
	Unknown Status = "unknown"
	Warning Status = "warning"
	Error   Status = "error"
)

// worse orders what may come of a check.
var worse = []Status{OK, Unknown, Warning, Error}

// Occasion is when a check is made.
type Occasion int

// The occasions.
const (
	// Preflight is before a machine becomes a node.
	Preflight Occasion = 1 << iota
	// Node is while it is one.
	Node
)

// Check is one question about a machine.
type Check struct {
	// Name is part of the interface.
	Name string
	// Asks is what is looked at, Finds what is an error and what a warning.
	Asks, Finds string
	When        Occasion
	run         func(context.Context, *visit) *finding
}

// Result is what came of one check. Its JSON keys are part of the interface.
type Result struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Finding string `json:"finding"`
	Remedy  string `json:"remedy,omitempty"`
	// Field is the path of the document's field behind it.
	Field string `json:"field,omitempty"`
	// Ignored: it was asked not to count.
	Ignored bool    `json:"ignored"`
	Seconds float64 `json:"seconds"`
}

// Report is what came of all of them. Its JSON keys are part of the interface.
type Report struct {
	// Status is ok, or failed where an error counts.
	Status string `json:"status"`
	// Cause is the check that explains the most of what was found on a node.
	Cause   string   `json:"cause,omitempty"`
	Checks  []Result `json:"checks"`
	Summary Summary  `json:"summary"`
	Seconds float64  `json:"seconds"`
}

// Summary counts the results; what is ignored counts as such only.
type Summary struct {
	OK       int `json:"ok"`
	Warnings int `json:"warnings"`
	Errors   int `json:"errors"`
	Unknown  int `json:"unknown"`
	Ignored  int `json:"ignored"`
}

// The two words for a report as a whole.
const (
	StatusOK     = "ok"
	StatusFailed = "failed"
)

// Checks are those of an occasion, in the order in which one explains the next.
func Checks(when Occasion) []Check {
	return slices.DeleteFunc(all(), func(c Check) bool { return c.When&when == 0 })
}

// All is the word for every check among those to be ignored.
const All = "all"

// UnknownCheck is the first of the names that is no check's; "" if all are.
func UnknownCheck(names []string) string {
	for _, n := range names {
		if n != All && !slices.ContainsFunc(all(), func(c Check) bool { return c.Name == n }) {
			return n
		}
	}
	return ""
}

// Budget is how long the checks have together. A check that has not ended by then is
// unknown.
const Budget = 13 * time.Second

// Run makes the checks of an occasion, all at once. Findings of the checks named in
// ignore do not count.
func Run(ctx context.Context, when Occasion, o Options, ignore []string) Report {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, Budget)
	defer cancel()
	v := newVisit(ctx, when, o)
	checks := Checks(when)
	answers := make([]chan Result, len(checks))
	for i, c := range checks {
		answers[i] = make(chan Result, 1)
		go func() { answers[i] <- ask(ctx, c, v) }()
	}
	r := Report{Checks: make([]Result, len(checks))}
	for i, c := range checks {
		r.Checks[i] = await(ctx, c, answers[i])
		r.Checks[i].Ignored = r.Checks[i].Status != OK && (slices.Contains(ignore, c.Name) || slices.Contains(ignore, All))
	}
	r.conclude(when)
	r.Seconds = seconds(start)
	return r
}

func seconds(since time.Time) float64 {
	return float64(time.Since(since).Round(time.Millisecond)) / float64(time.Second)
}

// ask makes a check. A panic of it is a defect, and no reason to lose the others.
func ask(ctx context.Context, c Check, v *visit) Result {
	start, f := time.Now(), &finding{}
	if err := converge.Safely(func() error { f = c.run(ctx, v); return nil }); err != nil {
		f = unknownf("report this as a defect of berth", "%v", err)
	}
	r := f.result()
	r.Name, r.Seconds = c.Name, seconds(start)
	return r
}

// grace is how long a check has to end by itself after its time is over.
const grace = 500 * time.Millisecond

func await(ctx context.Context, c Check, answer chan Result) Result {
	select {
	case r := <-answer:
		return r
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case r := <-answer:
		return r
	case <-late.C:
		return Result{Name: c.Name, Status: Unknown, Finding: fmt.Sprintf("it has not ended within %s", Budget), Seconds: Budget.Seconds()}
	}
}

func (r *Report) conclude(when Occasion) {
	r.Status = StatusOK
	for _, c := range r.Checks {
		switch {
		case c.Ignored:
			r.Summary.Ignored++
		case c.Status == OK:
			r.Summary.OK++
		case c.Status == Unknown:
			r.Summary.Unknown++
		case c.Status == Warning:
			r.Summary.Warnings++
		default:
			r.Summary.Errors++
			r.Status = StatusFailed
			if r.Cause == "" && when == Node {
				r.Cause = c.Name
			}
		}
	}
}
