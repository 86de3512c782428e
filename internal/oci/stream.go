package oci

import (
	"context"
	"errors"
	"hash"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
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

// proven is a layer as it comes in, compared with its size and digest at its end.
type proven struct {
	ctx   context.Context
	in    io.Reader
	layer v1.Descriptor
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
		p.err = &SizeError{p.what(), p.layer.Size, p.n}
	case errors.Is(err, io.EOF):
		p.err = p.proof()
	case err != nil:
		p.err = err
	}
	if p.err != nil {
		return 0, p.err
	}
	return n, err
}

func (p *proven) what() string { return "layer " + p.layer.Digest.String() }

func (p *proven) proof() error {
	if p.n < p.layer.Size {
		return &SizeError{p.what(), p.layer.Size, p.n}
	}
	if got := digest.NewDigest(p.layer.Digest.Algorithm(), p.sum); got != p.layer.Digest {
		return &DigestError{p.what(), p.layer.Digest.String(), got.String(), "the manifest"}
	}
	return nil
}
