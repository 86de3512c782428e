package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// Application is one run of the command apply, of a document that has been translated. All
// fields are required but ThisMachine.
type Application struct {
	Host host.Host
	// ThisMachine: the host is no other root, and status tells of the run.
	ThisMachine bool
	// Command and Version name the program, Start is when it started.
	Command, Version string
	Start            time.Time
	// BeginJoin begins what an early answer to is worth having; Engine applies.
	BeginJoin func(context.Context, *desired.State)
	Engine    *converge.Engine
	// Doing says what is being done, Say prints a line for people.
	Doing func() string
	Say   func(string)
}

// Run applies a state, says what came of it and keeps the timeline. kept: something that
// nobody wants any more stays, since it is not berth's alone.
func (a Application) Run(ctx context.Context, st *desired.State) (kept bool, err error) {
	if a.ThisMachine {
		defer Tell(a.Host, a.Command, a.Start, a.Doing)()
	}
	a.BeginJoin(ctx, st)
	res, err := a.Engine.Apply(ctx, st)
	if err = WithCause(ctx, WithUnitLog(ctx, a.Host, err)); err != nil {
		a.keep(res, exitcode.OfCommand(err))
		if s := report.ToConfirm(res); s != "" {
			a.Say(s)
		}
		return false, err
	}
	a.Say(report.Applied(res, time.Since(a.Start)))
	if err := a.Engine.Remember(ctx, st); err != nil {
		a.Say("left for the next run: " + err.Error())
	}
	kept, code := len(res.Plan.Kept) > 0, exitcode.OK
	if kept {
		code = exitcode.Kept
	}
	a.keep(res, code)
	return kept, nil
}

func (a Application) keep(res *converge.Result, code int) {
	report.KeepTimeline(a.Host, a.Command, a.Version, a.Start, res, code)
}

// WithCause adds why a command was told to end to the error that came of it.
func WithCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}
