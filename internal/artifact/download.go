package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// one is a single pass over one source.
func (f *Fetcher) one(ctx context.Context, h host.Host, a *desired.Artifact, s source) (converge.Staged, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.digest != "" {
		ctx = context.WithValue(ctx, verifiedKey{}, true)
	}
	watchdog := time.AfterFunc(f.opt.Stall, func() { cancel(fmt.Errorf("no data for %s", f.opt.Stall)) })
	defer watchdog.Stop()
	body, err := f.get(ctx, s)
	if err != nil {
		return converge.Staged{}, clean(ctx, err)
	}
	defer body.Close()
	in := &intake{body: body, ctx: ctx, sum: sha256.New(), left: f.opt.MaxBytes, alive: func() { watchdog.Reset(f.opt.Stall) }}
	files := &staging{h: h}
	if err := f.take(in, files, a, s); err != nil {
		if left := files.remove(); left != nil {
			err = errors.Join(err, left)
		}
		return converge.Staged{}, err
	}
	return converge.Staged{URL: s.shown(), SHA256: in.digest(), Bytes: f.opt.MaxBytes - in.left, Unverified: s.digest == ""}, nil
}

// take reads the whole content, stages its files and compares the digest.
func (f *Fetcher) take(in *intake, files *staging, a *desired.Artifact, s source) error {
	err := f.unpack(in, files, a, s)
	if in.err != nil {
		// What the network did explains what the unpacker saw.
		return in.err
	}
	if local(err) {
		return err
	}
	if err == nil || s.digest != "" {
		if _, drained := io.Copy(io.Discard, in); drained != nil {
			return drained
		}
	}
	if s.digest != "" && in.digest() != s.digest {
		return &DigestError{URL: s.shown(), Want: s.digest, Got: in.digest(), Source: s.from}
	}
	return err
}

func (f *Fetcher) get(ctx context.Context, s source) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "berth")
	resp, err := f.opt.Client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, &statusError{resp.StatusCode}
	}
	return resp.Body, nil
}

// clean takes the URL out of an error, since its query may be a secret, and puts
// the reason for which a request was given up in.
func clean(ctx context.Context, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// intake is the content as it comes in: counted, bounded and hashed.
type intake struct {
	body  io.Reader
	ctx   context.Context
	sum   hash.Hash
	left  int64
	alive func()
	// err is the first error other than io.EOF.
	err error
}

// Read implements io.Reader. An end that comes after the request was given up is
// none: a server that notices may still close its answer properly.
func (in *intake) Read(p []byte) (int, error) {
	n, err := in.body.Read(p)
	if errors.Is(err, io.EOF) && in.ctx.Err() != nil {
		err = context.Cause(in.ctx)
	}
	if n > 0 {
		in.alive()
		in.sum.Write(p[:n])
	}
	if in.left -= int64(n); in.left < 0 {
		err = errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) && in.err == nil {
		in.err = clean(in.ctx, err)
	}
	return n, err
}

func (in *intake) digest() string { return hex.EncodeToString(in.sum.Sum(nil)) }

var errTooLarge = errors.New("larger than the bound for a download")
