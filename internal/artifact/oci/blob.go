package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Blob opens the bytes of a layer from offset on. They end with io.EOF only at
// the layer's size: an answer that ends early gives io.ErrUnexpectedEOF (in a
// *RequestError), one that goes on a *SizeError. The digest is the caller's to
// compare, since only he sees all parts of a download that was continued.
//
// Of a registry that does not continue, the bytes before offset are read and
// dropped: the first Read may then take long.
//
// Errors: *StatusError, *RequestError, *SizeError, *DigestError (the registry
// says in its header that it sends something else).
func (c *Client) Blob(ctx context.Context, r Reference, l Layer, offset int64) (io.ReadCloser, error) {
	q := question{Subject: Subject{r.Registry, r.Repository, "blob " + l.Digest.String()}, verified: true}
	if offset < 0 || offset > l.Size {
		return nil, &RequestError{q.Subject, fmt.Errorf("can't continue at byte %d of %d", offset, l.Size)}
	}
	if offset == l.Size && offset > 0 {
		return http.NoBody, nil
	}
	header := http.Header{"Accept-Encoding": {"identity"}}
	if offset > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := c.get(ctx, r, q, r.base()+"/blobs/"+l.Digest.String(), header)
	if err != nil {
		return nil, err
	}
	b := &blob{ctx: ctx, subject: q.Subject, body: resp.Body, at: offset, size: l.Size}
	if err := b.check(resp, l); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return b, nil
}

// blob is the rest of a layer as it comes in.
type blob struct {
	ctx     context.Context
	subject Subject
	body    io.ReadCloser
	// skip is what comes before what was asked for; at is the place in the layer
	// of the next byte to return.
	skip, at, size int64
}

// check compares the answer's headers with what is known of the layer.
func (b *blob) check(resp *http.Response, l Layer) error {
	length := l.Size
	if resp.StatusCode == http.StatusPartialContent {
		if start := fmt.Sprintf("bytes %d-", b.at); !strings.HasPrefix(resp.Header.Get("Content-Range"), start) {
			return &RequestError{b.subject, fmt.Errorf("asked to go on at byte %d, it sends %q", b.at, words(resp.Header.Get("Content-Range"), 60, nil))}
		}
		length -= b.at
	} else {
		b.skip = b.at
	}
	if n := resp.ContentLength; n >= 0 && n != length {
		return &SizeError{b.subject, l.Size, n + l.Size - length}
	}
	said, err := digest.Parse(resp.Header.Get(digestHeader))
	if err == nil && said.Algorithm() == l.Digest.Algorithm() && said != l.Digest {
		return &DigestError{b.subject, l.Digest.String(), said.String(), "the manifest"}
	}
	return nil
}

// Read implements io.Reader.
func (b *blob) Read(p []byte) (int, error) {
	if b.skip > 0 {
		n, err := io.CopyN(io.Discard, b.body, b.skip)
		if b.skip -= n; err != nil {
			return 0, b.failed(unexpected(err))
		}
	}
	n, err := b.body.Read(p)
	b.at += int64(n)
	switch {
	case b.at > b.size:
		return 0, &SizeError{b.subject, b.size, b.at}
	case errors.Is(err, io.EOF) && b.at == b.size && b.ctx.Err() == nil:
		return n, io.EOF
	case err != nil:
		return n, b.failed(unexpected(err))
	}
	return n, nil
}

func (b *blob) failed(err error) error { return failure(b.ctx, b.subject, err) }

// Close implements io.Closer.
func (b *blob) Close() error { return b.body.Close() }

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
