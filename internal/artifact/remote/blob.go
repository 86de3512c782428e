package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/oci"
)

// Blob opens the bytes of a layer from start on: that is offset, or 0 where the
// registry does not continue, and what comes before offset is the caller's to
// skip. They end with io.EOF only at the layer's size: an answer that ends early
// gives io.ErrUnexpectedEOF (in a *RequestError), one that goes on a *SizeError.
// The digest is the caller's to compare, since only he sees all parts of a
// download that was continued.
//
// Errors: *StatusError, *RequestError, *oci.SizeError, *oci.DigestError (the registry
// says in its header that it sends something else).
func (c *Client) Blob(ctx context.Context, r oci.Reference, l v1.Descriptor, offset int64) (body io.ReadCloser, start int64, err error) {
	q := question{Subject: Subject{r.Registry, r.Repository, "blob " + l.Digest.String()}, verified: true}
	if offset < 0 || offset > l.Size {
		return nil, 0, &RequestError{q.Subject, fmt.Errorf("can't continue at byte %d of %d", offset, l.Size)}
	}
	if offset == l.Size && offset > 0 {
		return http.NoBody, offset, nil
	}
	header := http.Header{"Accept-Encoding": {"identity"}}
	if offset > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := c.get(ctx, r, q, "/blobs/"+l.Digest.String(), header)
	if err != nil {
		return nil, 0, err
	}
	if ctx.Err() != nil { // a server that sees the end of its client may end its answer in order
		_ = resp.Body.Close()
		return nil, 0, failure(ctx, q.Subject, ctx.Err())
	}
	b := &blob{ctx: ctx, subject: q.Subject, body: resp.Body, size: l.Size}
	if resp.StatusCode == http.StatusPartialContent {
		b.at = offset
	}
	start = b.at
	if err := b.check(resp, l); err != nil {
		_ = resp.Body.Close()
		return nil, 0, err
	}
	return b, start, nil
}

// blob is the rest of a layer as it comes in.
type blob struct {
	ctx     context.Context
	subject Subject
	body    io.ReadCloser
	// at is the offset in the layer of the next byte to return.
	at, size int64
}

// check compares the answer's headers with what is known of the layer.
func (b *blob) check(resp *http.Response, l v1.Descriptor) error {
	if resp.StatusCode == http.StatusPartialContent {
		if start := fmt.Sprintf("bytes %d-", b.at); !strings.HasPrefix(resp.Header.Get("Content-Range"), start) {
			return &RequestError{b.subject, fmt.Errorf("asked to go on at byte %d, it sends %q", b.at, words(resp.Header.Get("Content-Range"), 60, nil))}
		}
	}
	if n := resp.ContentLength; n >= 0 && b.at+n != l.Size {
		return &oci.SizeError{What: b.subject.String(), Want: l.Size, Got: b.at + n}
	}
	said, err := digest.Parse(resp.Header.Get(digestHeader))
	if err == nil && said.Algorithm() == l.Digest.Algorithm() && said != l.Digest {
		return &oci.DigestError{What: b.subject.String(), Want: l.Digest.String(), Got: said.String(), Source: "the manifest"}
	}
	return nil
}

// Read implements io.Reader.
func (b *blob) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.at += int64(n)
	switch {
	case b.at > b.size:
		return 0, &oci.SizeError{What: b.subject.String(), Want: b.size, Got: b.at}
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
