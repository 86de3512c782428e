package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/exitcode"
)

// patience is what a registry is given.
type patience struct {
	// asks is how often it is asked the same without any progress.
	asks uint
	// stall is how long a layer may send nothing, manifest how long a manifest may
	// take as a whole.
	stall, manifest time.Duration
	// pause is the first one between two questions; later ones are longer.
	pause time.Duration
}

// Asks is how often somebody asks who can watch.
const Asks = 6

var usual = patience{asks: Asks, stall: 30 * time.Second, manifest: time.Minute, pause: backoff.DefaultInitialInterval}

// again asks until there is an answer, or none is to be had.
func again[T any](ctx context.Context, p patience, ask func() (T, error)) (T, error) {
	var last error
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval = p.pause
	v, err := backoff.Retry(ctx, func() (T, error) {
		v, err := ask()
		last = err
		switch status, ok := errors.AsType[*remote.StatusError](err); {
		case err == nil:
			return v, nil
		case ok && status.Temporary() && status.RetryAfter > 0:
			return v, backoff.RetryAfter(int(min(status.RetryAfter, time.Minute).Seconds()))
		case !passing(err):
			return v, backoff.Permanent(err)
		}
		return v, err
	}, backoff.WithBackOff(pace), backoff.WithMaxTries(p.asks), backoff.WithMaxElapsedTime(0))
	switch {
	case err == nil:
		return v, nil
	case last != nil && ctx.Err() == nil:
		err = last
	}
	return v, &RegistryError{err}
}

// passing says that the same question may be answered later.
func passing(err error) bool {
	if status, ok := errors.AsType[*remote.StatusError](err); ok {
		return status.Temporary()
	}
	_, ok := errors.AsType[*remote.RequestError](err)
	return ok
}

// resumed reads a blob and continues it where it breaks off.
type resumed struct {
	ctx      context.Context
	patience patience
	// open is remote.Client.Blob of it.
	open func(ctx context.Context, offset int64) (body io.ReadCloser, start int64, err error)

	cur    *watched
	at     int64
	breaks uint
}

// Read implements io.Reader.
func (r *resumed) Read(p []byte) (int, error) {
	for {
		if r.cur == nil {
			cur, err := again(r.ctx, r.patience, r.connect)
			if err != nil {
				return 0, err
			}
			r.cur = cur
		}
		n, err := r.cur.Read(p)
		if n > 0 {
			r.at, r.breaks = r.at+int64(n), 0
			return n, nil // an error comes again with the next Read
		}
		if err == nil {
			continue
		}
		_ = r.Close()
		if r.breaks++; errors.Is(err, io.EOF) || r.ctx.Err() != nil || !passing(err) || r.breaks == r.patience.asks {
			return 0, err
		}
	}
}

// connect asks once for what comes at r.at.
func (r *resumed) connect() (*watched, error) {
	w := &watched{stall: r.patience.stall}
	ctx, cancel := context.WithCancelCause(r.ctx)
	w.cancel = cancel
	w.watchdog = time.AfterFunc(w.stall, func() { cancel(fmt.Errorf("no data for %s", w.stall)) })
	body, start, err := r.open(ctx, r.at)
	if err != nil {
		w.stop()
		return nil, err
	}
	w.body = body
	if _, err := io.CopyN(io.Discard, w, r.at-start); err != nil {
		_ = w.Close()
		return nil, err
	}
	return w, nil
}

// Close implements io.Closer.
func (r *resumed) Close() error {
	if r.cur == nil {
		return nil
	}
	err := r.cur.Close()
	r.cur = nil
	return err
}

// watched is an answer that is given up when it sends nothing for a while.
type watched struct {
	body     io.ReadCloser
	stall    time.Duration
	watchdog *time.Timer
	cancel   context.CancelCauseFunc
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	if n > 0 {
		w.watchdog.Reset(w.stall)
	}
	return n, err
}

// Close implements io.Closer.
func (w *watched) Close() error {
	err := w.body.Close()
	w.stop()
	return err
}

func (w *watched) stop() {
	w.watchdog.Stop()
	w.cancel(nil)
}

// RegistryError is an image that its registry did not give.
type RegistryError struct{ Err error }

// Error is the registry's own text.
func (e *RegistryError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RegistryError) Unwrap() error { return e.Err }

// ExitCode implements exitcode.Coded.
func (*RegistryError) ExitCode() int { return exitcode.ImagePull }

// Hint says what helps.
func (*RegistryError) Hint() string {
	return "Check the reference, and that its registry answers from here (HTTPS_PROXY); or take the image from a file: --image REFERENCE=PATH."
}
