// Package inflate unpacks what is compressed with gzip or zstd.
package inflate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// MaxWindow bounds what a zstd stream may make its decoder remember, in bytes: 32
// MiB is twice what zstd -19 takes.
const MaxWindow = 32 << 20

// Window is asked before a decoder with a window is made, and may wait until
// there is memory for it; release is called when the decoder is closed.
type Window func(context.Context) (release func(), err error)

// Reader gives content as it was before it was compressed.
type Reader struct {
	io.Reader
	// Packed says that it was compressed.
	Packed bool
	close  func()
}

// New finds out by the first bytes how content is compressed, for names and media
// types are not always right: what is neither gzip nor zstd is given as it is.
// buffer is how much is read at once, in bytes; a nil window does not limit. Its
// errors are in's, window's, and those of a decoder that sees no header.
func New(ctx context.Context, in io.Reader, buffer int, window Window) (*Reader, error) {
	b := bufio.NewReaderSize(in, buffer)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case IsGzip(magic):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		return &Reader{z, true, func() {}}, nil
	case IsZstd(magic):
		return newZstd(ctx, b, window)
	}
	return &Reader{b, false, func() {}}, nil
}

func newZstd(ctx context.Context, in io.Reader, window Window) (*Reader, error) {
	release := func() {}
	if window != nil {
		var err error
		if release, err = window(ctx); err != nil {
			return nil, err
		}
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(MaxWindow))
	if err != nil {
		release()
		return nil, err
	}
	return &Reader{z, true, func() { z.Close(); release() }}, nil
}

// Close frees the decoder, and leaves what it reads from open. It is called once.
func (r *Reader) Close() { r.close() }

// IsGzip says whether content that begins so is gzip.
func IsGzip(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

// IsZstd says whether content that begins so, with 4 bytes, is zstd: a frame, or
// one to skip, with which a stream may begin.
func IsZstd(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	skip := head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18})
	return skip || bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd})
}
