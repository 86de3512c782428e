package oci

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"hash"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
)

// bounded counts what a layer unpacks to.
type bounded struct {
	in   io.Reader
	left *int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if *b.left -= int64(n); *b.left < 0 {
		return 0, ErrBounds
	}
	return n, err
}

// inflate finds out by the first bytes how a layer is compressed; media types
// are not always right.
func inflate(in io.Reader) (plain io.Reader, done func(), err error) {
	b := bufio.NewReaderSize(in, 128<<10)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		return z, func() {}, err
	case isZstd(magic):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(32<<20))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}

// isZstd knows frames and those to skip, with which a stream may begin.
func isZstd(magic []byte) bool {
	skip := len(magic) == 4 && magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18})
	return skip || bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd})
}

// proven is a layer as it comes in, compared with its size and digest at its end.
type proven struct {
	ctx   context.Context
	in    io.Reader
	layer Layer
	sum   hash.Hash
	n     int64
	// err is the first error other than a good end.
	err error
}

// Read implements io.Reader.
func (p *proven) Read(b []byte) (int, error) {
	if p.err == nil && p.ctx.Err() != nil {
		p.err = context.Cause(p.ctx)
	}
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.in.Read(b)
	p.n += int64(n)
	_, _ = p.sum.Write(b[:n]) // hashes never fail
	switch {
	case p.n > p.layer.Size:
		p.err = &SizeError{p.subject(), p.layer.Size, p.n}
	case errors.Is(err, io.EOF):
		p.err = p.verdict()
	case err != nil:
		p.err = err
	}
	if p.err != nil {
		return 0, p.err
	}
	return n, err
}

func (p *proven) subject() Subject { return Subject{What: "layer " + p.layer.Digest.String()} }

func (p *proven) verdict() error {
	if p.n < p.layer.Size {
		return &SizeError{p.subject(), p.layer.Size, p.n}
	}
	if got := digest.NewDigest(p.layer.Digest.Algorithm(), p.sum); got != p.layer.Digest {
		return &DigestError{p.subject(), p.layer.Digest.String(), got.String(), "the manifest"}
	}
	return nil
}
