package machine

import (
	"context"
	"errors"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// What is asked for without a deadline has one of these: a program, a job or a
// systemd that hangs must not hold whoever asks for ever. They are far beyond
// what any of them takes on a machine that is well.
const (
	commandBound = 5 * time.Minute
	// jobBound includes the jobs that a job waits for.
	jobBound    = 15 * time.Minute
	answerBound = 2 * time.Minute
)

// bounded gives a context that has no deadline one.
func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, d, &host.BoundError{After: d})
}

// endOf is why a context has ended: its error, or the bound.
func endOf(ctx context.Context) error {
	if b, ok := errors.AsType[*host.BoundError](context.Cause(ctx)); ok {
		return b
	}
	return ctx.Err()
}
