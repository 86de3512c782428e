package artifact

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Reached is what a source of an artifact says without giving it.
type Reached struct {
	// URL is without what may be secret in it.
	URL string
	// Size is in bytes, -1 where the source does not tell.
	Size int64
	// Digest is sha256 in hex, From who promises it; both are "" where nobody does.
	Digest, From string
	// Err is a *DownloadError; nil where the source has it.
	Err error
}

// Reach asks each source of an artifact once whether it has it. Nothing is fetched but
// what leads to the content, and nothing is written. The error is as of Stage, where no
// source can be asked.
func (f *Fetcher) Reach(ctx context.Context, h host.FS, a *desired.Artifact) ([]Reached, error) {
	sources, err := f.sources(h, a)
	if err != nil {
		return nil, err
	}
	out := make([]Reached, len(sources))
	done := make(chan struct{})
	for i, s := range sources {
		go func() {
			defer func() { done <- struct{}{} }()
			out[i] = f.reach(ctx, a, s)
		}()
	}
	for range sources {
		<-done
	}
	return out, nil
}

func (f *Fetcher) reach(ctx context.Context, a *desired.Artifact, s *source) Reached {
	r := Reached{URL: s.shown(), Digest: s.digest, From: s.from, Size: -1}
	var err error
	if at, ok := s.origin.(measurer); ok {
		r.Size, err = at.measure(ctx)
	} else {
		r.Size, err = opened(ctx, s.origin)
	}
	if r.Digest == "" && s.pin != "" {
		r.Digest, r.From = s.pin, "the reference"
	}
	if err != nil {
		r.Err = &DownloadError{Name: a.Name, URL: r.URL, Status: statusOf(err), Attempts: 1, Err: err}
	}
	return r
}

// measurer is an origin that knows a cheaper way than to open it.
type measurer interface {
	measure(ctx context.Context) (size int64, err error)
}

// opened is for origins on the machine itself.
func opened(ctx context.Context, o origin) (int64, error) {
	fl, err := o.open(ctx, 0, "")
	if err != nil {
		return -1, err
	}
	return fl.size, fl.body.Close()
}

// measure asks a registry for the manifest: it names the sizes of its layers.
func (s *stock) measure(ctx context.Context) (int64, error) {
	content, err := s.resolve(ctx)
	if err != nil {
		return -1, err
	}
	var size int64
	for _, l := range content.Layers {
		size += l.Size
	}
	return size, nil
}

// measure asks for the head, and where that is refused or says no size, for one byte:
// signed URLs are often good for GET alone.
func (w *web) measure(ctx context.Context) (int64, error) {
	size, err := w.head(ctx, http.MethodHead)
	if err == nil && size >= 0 || err != nil && statusOf(err) == 0 {
		return size, err
	}
	return w.head(ctx, http.MethodGet)
}

func (w *web) head(ctx context.Context, method string) (int64, error) {
	if w.verified {
		ctx = context.WithValue(ctx, verifiedKey{}, true)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.url.String(), http.NoBody)
	if err != nil {
		return -1, err
	}
	req.Header.Set("User-Agent", "berth")
	if method == http.MethodGet {
		req.Header.Set("Range", "bytes=0-0")
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return -1, err
	}
	defer resp.Body.Close()
	return sizeOf(resp)
}

func sizeOf(resp *http.Response) (int64, error) {
	switch resp.StatusCode {
	case http.StatusOK:
		return resp.ContentLength, nil
	case http.StatusPartialContent:
		if _, err := io.CopyN(io.Discard, resp.Body, 1); err != nil {
			return -1, fmt.Errorf("read a byte: %w", err)
		}
		_, size, err := contentRange(resp.Header.Get("Content-Range"))
		return size, err
	}
	return -1, &statusError{status: resp.StatusCode}
}
