package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/readahead"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/converge"
)

// Between the steps of a pass stand a few buffers, so that network and digest,
// decompression, and disk go on at the same time.
const (
	aheadBuffers = 4
	aheadSize    = 256 << 10
)

// errStopped ends a flow that nobody reads any more.
var errStopped = errors.New("stopped")

// pass reads the content once, from one party of a group.
func (t *tries) pass(ctx context.Context, g *group, from []*source) (converge.Staged, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errStopped)
	fd := &feed{tries: t, ctx: ctx, from: from, verified: g.digest != ""}
	in := &intake{from: fd, tooLarge: func() error { return tooLarge(fd.at) }, sum: sha256.New(), left: t.opt.MaxBytes}
	ahead, err := readahead.NewReaderSize(in, aheadBuffers, aheadSize)
	if err != nil {
		return converge.Staged{}, err
	}
	stop := func() {
		cancel(errStopped)
		_ = ahead.Close()
		fd.close()
	}
	files := newStaging(t.h)
	files.refused = func() { cancel(errStopped) }
	err = t.take(ctx, ahead, in, files, from[0], stop)
	if err = errors.Join(err, files.wait()); !local(err) && in.err == nil && g.digest != "" && in.digest() != g.digest {
		// Content other than what was promised is that, whatever the unpacker says.
		err = &DigestError{URL: fd.at.shown(), Want: g.digest, Got: in.digest(), Source: fd.at.from}
	}
	if err == nil {
		err = t.fetcher.checkPrograms(t.h, t.a, fd.at.shown())
	}
	if err != nil {
		return converge.Staged{}, t.undo(g, fd, files, err)
	}
	return converge.Staged{URL: fd.at.shown(), SHA256: in.digest(), Bytes: t.opt.MaxBytes - in.left, Unverified: g.digest == "", Resumed: fd.resumed}, nil
}

// take unpacks the content and reads what is left of it where a digest is to be
// compared; then nothing moves any more. What the network did explains what the
// unpacker saw.
func (t *tries) take(ctx context.Context, ahead io.Reader, in *intake, files *staging, s *source, stop func()) error {
	err := t.fetcher.unpack(ctx, ahead, files, t.a, s)
	if err == nil || s.digest != "" && !local(err) {
		_, _ = io.Copy(io.Discard, ahead) // its error is in's
	}
	stop()
	if in.err != nil && !errors.Is(in.err, errStopped) && !local(err) {
		return in.err
	}
	return err
}

// undo removes what a pass has prepared and says where the error comes from.
func (t *tries) undo(g *group, fd *feed, files *staging, err error) error {
	if left := files.remove(); left != nil {
		return errors.Join(err, left)
	}
	if isContent(err) && fd.at != nil {
		t.blame(g, fd.at, fd.used, err)
	}
	return err
}

// intake is the content as it comes in: bounded and hashed.
type intake struct {
	from     io.Reader
	tooLarge func() error
	sum      hash.Hash
	left     int64
	// err is the first error other than io.EOF.
	err error
}

// Read implements io.Reader.
func (in *intake) Read(p []byte) (int, error) {
	n, err := in.from.Read(p)
	in.sum.Write(p[:n])
	if in.left -= int64(n); in.left < 0 {
		err = in.tooLarge()
	}
	if err != nil && !errors.Is(err, io.EOF) && in.err == nil {
		in.err = err
	}
	return n, err
}

func (in *intake) digest() string { return hex.EncodeToString(in.sum.Sum(nil)) }

// tooLarge is a download that goes over the bound.
func tooLarge(s *source) error {
	return &UnpackError{URL: s.shown(), Err: errors.New("larger than the bound for a download")}
}

// clean takes URLs out of an error, since their queries may be secrets, and puts
// the reason for which a request was given up in.
func clean(ctx context.Context, err error) error {
	err = remote.Bare(err)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
