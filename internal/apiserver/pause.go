package apiserver

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Intervals between tries grow from first to most, each with 30 % of jitter.
func Intervals(first, most time.Duration) *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: first, MaxInterval: most, Multiplier: 1.6, RandomizationFactor: 0.3}
}

// Pause waits for d; it returns false if ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
