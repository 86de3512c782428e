package provision

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/report"
)

// lockPath is held by a run from before it takes the last result away until its
// own is written: whoever waits gets the result of a whole run.
const lockPath = paths.RunDir + "/provision.lock"

// patience is how long a run waits for another's end: as long as an apply does,
// and no longer than it may take itself.
const patience = time.Minute

// Command is what a run calls itself where it locks the machine.
const Command = "berth provision"

// lockRun waits until no other run goes on. The error is a *host.LockedError where
// one still does.
func (r *run) lockRun(ctx context.Context) (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(patience, r.terms.Timeout))
	defer cancel()
	return lock(ctx, r.Host, Command)
}

// Lock keeps runs away while something else changes the machine as a whole, and waits
// for one that goes on as a run waits for another.
func Lock(ctx context.Context, h host.Host, command string) (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return lock(ctx, h, command)
}

func lock(ctx context.Context, h host.Host, command string) (unlock func() error, err error) {
	if _, err := host.MkdirAll(h, paths.RunDir); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	unlock, err = h.Lock(ctx, lockPath, fmt.Sprintf("%s (pid %d)", command, os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return unlock, nil
}

// yield ends a run that the other one left no room. Result, sentinel, log and
// telemetry are the other's.
func (r *run) yield(outcome error) int {
	f := Explain(outcome)
	for _, line := range report.Explain(f) {
		r.say(line)
	}
	r.say("nothing was touched: the result will be that of the run that goes on")
	return f.Code.Number
}
