package credential

import (
	"context"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/identity"
)

const (
	// look is how often the clock is compared with the certificate: a machine sleeps,
	// and clocks are set.
	look = time.Hour
	// calm is how long a new certificate is not doubted: answers to the one before it
	// may still come, and a server that knows none must not be asked for more and more.
	calm = 10 * time.Minute
	// apart is over how long a fleet looks at its certificates when a server knows none
	// of them any more.
	apart = 20 * time.Second
	// The share of its life after which a certificate is renewed, as published: 80 to
	// 88 %.
	share, spread = 0.8, 0.08
)

// Due is when a certificate is renewed.
func (k *Keeper) Due(certificate []byte) time.Time {
	from, until := identity.Validity(certificate)
	life := until.Sub(from)
	return from.Add(time.Duration(float64(life) * (share + spread*k.Random)))
}

// Rotate renews the certificate each time that it is due, until ctx ends. renewed
// is told of the new access, failed of what went wrong; then it is tried again. With a
// certificate that serves no more it takes a bootstrap token as soon as there is one;
// one that is doubted is renewed within apart. One that only seemed to have ended, since
// the clock was ahead, serves again: renewed is told of that, too.
func (k *Keeper) Rotate(ctx context.Context, a apiserver.Access, renewed func(apiserver.Access) error, failed func(error)) {
	if k.Given != "" {
		k.reread(ctx, a, renewed, failed)
		return
	}
	pauses := apiserver.Intervals(10*time.Second, 10*time.Minute)
	doubted, since := false, time.Time{}
	for ctx.Err() == nil {
		left := k.Due(a.Certificate).Sub(k.Host.Now())
		if left > 0 && !doubted {
			if k.failing.Load() {
				k.failing.Store(renewed(a) != nil)
			}
			doubted = k.sleep(ctx, min(left, look)) && k.Host.Now().Sub(since) >= calm
			if doubted {
				_ = k.Host.Sleep(ctx, time.Duration(k.Random*float64(apart))) // it ends early with ctx alone
			}
			continue
		}
		next, err := k.next(ctx, a)
		if err == nil {
			err = renewed(next)
		}
		k.failing.Store(err != nil)
		if err == nil {
			a, doubted, since = next, false, k.Host.Now()
			pauses.Reset()
			continue
		}
		if ctx.Err() == nil {
			failed(err)
			_ = k.Host.Sleep(ctx, pauses.NextBackOff())
		}
	}
}

// Doubt says that the API server does not know the certificate, whatever is written in
// it. It does not wait.
func (k *Keeper) Doubt() {
	select {
	case k.doubts <- struct{}{}:
	default: // it is doubted already
	}
}

// sleep ends early with ctx, or when the certificate is doubted, and says so.
func (k *Keeper) sleep(ctx context.Context, d time.Duration) (doubted bool) {
	select {
	case <-k.doubts:
		return true
	default:
	}
	ctx, wake := context.WithCancel(ctx)
	heard := make(chan bool, 1)
	go func() {
		select {
		case <-k.doubts:
			heard <- true
		case <-ctx.Done():
			heard <- false
		}
		wake()
	}()
	_ = k.Host.Sleep(ctx, d) // it ends early with ctx alone
	wake()
	return <-heard
}

// next is the access after a: with its certificate while that serves, else as at first.
func (k *Keeper) next(ctx context.Context, a apiserver.Access) (apiserver.Access, error) {
	problem := k.problem(a)
	if problem == "" {
		next, err := k.renew(ctx, a)
		if identity.ReasonOf(err) != identity.ReasonUnauthorized {
			return next, err
		}
		problem = err.Error()
	}
	return k.first(ctx, a, problem)
}
