package imagestore

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// stubborn repeats a call while containerd is away, or holds a lock of a
// connection that broke, until that has lasted for the store's patience. attempt
// says whether it moved bytes: then patience begins anew.
func (c *session) stubborn(ctx context.Context, doing string, attempt func(context.Context) (moved bool, err error)) error {
	pace := newPace()
	since := time.Now()
	for {
		moved, err := attempt(ctx)
		if err == nil || ctx.Err() != nil || !isLost(err) {
			return c.named(ctx, doing, err)
		}
		if moved {
			pace.Reset()
			since = time.Now()
		}
		if time.Since(since) > c.at.patience {
			return &NotRunningError{Socket: c.at.socket, Waited: time.Since(since), Err: err}
		}
		if err := c.pause(ctx, pace.NextBackOff()); err != nil {
			return err
		}
	}
}

// named names an error. A call that ctx ended has ctx's.
func (c *session) named(ctx context.Context, doing string, err error) error {
	if code := status.Code(err); ctx.Err() != nil && (code == codes.Canceled || code == codes.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	return answer(doing, err)
}

func newPace() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 10*time.Millisecond, 500*time.Millisecond
	return b
}

// pause lets a lock go, then waits for the connection.
func (c *session) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return c.connected(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// call is stubborn for a call that moves no bytes.
func (c *session) call(ctx context.Context, doing string, f func(context.Context) error) error {
	return c.stubborn(ctx, doing, func(ctx context.Context) (bool, error) { return false, f(ctx) })
}
