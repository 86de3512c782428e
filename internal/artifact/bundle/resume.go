package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/berth-dev/berth/internal/artifact/oci"
)

const (
	// asks is how often a registry is asked the same without any progress.
	asks = 6
	// stall is how long it may send nothing.
	stall = 30 * time.Second
)

// again asks until there is an answer, or none is to be had.
func again[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	var last error
	v, err := backoff.Retry(ctx, func() (T, error) {
		v, err := ask()
		last = err
		switch status, ok := errors.AsType[*oci.StatusError](err); {
		case err == nil:
			return v, nil
		case ok && status.Temporary() && status.RetryAfter > 0:
			return v, backoff.RetryAfter(int(min(status.RetryAfter, time.Minute).Seconds()))
		case !passing(err):
			return v, backoff.Permanent(err)
		}
		return v, err
	}, backoff.WithMaxTries(asks), backoff.WithMaxElapsedTime(0))
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
	if status, ok := errors.AsType[*oci.StatusError](err); ok {
		return status.Temporary()
	}
	_, ok := errors.AsType[*oci.RequestError](err)
	return ok
}

// resumed reads a blob and continues it where it breaks off.
type resumed struct {
	ctx  context.Context
	open func(ctx context.Context, offset int64) (io.ReadCloser, error)

	body   io.ReadCloser
	cancel context.CancelCauseFunc
	dog    *time.Timer
	at     int64
	breaks int
}

// Read implements io.Reader.
func (r *resumed) Read(p []byte) (int, error) {
	for {
		if r.body == nil {
			if err := r.connect(); err != nil {
				return 0, err
			}
		}
		n, err := r.body.Read(p)
		if n > 0 {
			r.dog.Reset(stall)
			r.at, r.breaks = r.at+int64(n), 0
			return n, nil // an error comes again with the next Read
		}
		if err == nil {
			continue
		}
		_ = r.Close()
		if r.breaks++; errors.Is(err, io.EOF) || r.ctx.Err() != nil || !passing(err) || r.breaks == asks {
			return 0, err
		}
	}
}

func (r *resumed) connect() error {
	ctx, cancel := context.WithCancelCause(r.ctx)
	dog := time.AfterFunc(stall, func() { cancel(fmt.Errorf("no data for %s", stall)) })
	body, err := again(ctx, func() (io.ReadCloser, error) {
		dog.Reset(stall)
		defer dog.Stop()
		return r.open(ctx, r.at)
	})
	if err != nil {
		cancel(nil)
		return err
	}
	r.body, r.cancel, r.dog = body, cancel, dog
	dog.Reset(stall)
	return nil
}

// Close implements io.Closer.
func (r *resumed) Close() error {
	if r.body == nil {
		return nil
	}
	r.dog.Stop()
	err := r.body.Close()
	r.cancel(nil)
	r.body = nil
	return err
}

// exitImage is ERR_CONTAINERD_CTR_IMG_PULL_TIMEOUT: an image that could not be
// had.
const exitImage = 36

// RegistryError is an image that its registry did not give.
type RegistryError struct{ Err error }

// Error is the registry's own text.
func (e *RegistryError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RegistryError) Unwrap() error { return e.Err }

// ExitCode implements the interface of package report.
func (*RegistryError) ExitCode() int { return exitImage }

// Hint says what helps.
func (*RegistryError) Hint() string {
	return "Check the reference, and that its registry answers from here (HTTPS_PROXY); or take the image from a file: --image REFERENCE=PATH."
}
