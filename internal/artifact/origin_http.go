package artifact

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/artifact/remote"
)

// web is a blob behind an http or https URL.
type web struct {
	client *http.Client
	url    *url.URL
	// verified: the blob's digest is known (see redirect).
	verified bool
}

func (w *web) open(ctx context.Context, offset int64, tag string) (*flow, error) {
	if w.verified {
		ctx = context.WithValue(ctx, verifiedKey{}, true)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "berth")
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
		if tag != "" {
			req.Header.Set("If-Range", tag)
		}
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	fl, err := answer(resp, offset)
	if err != nil {
		_ = resp.Body.Close()
	}
	return fl, err
}

// answer reads the head of an answer.
func answer(resp *http.Response, offset int64) (*flow, error) {
	fl := &flow{body: resp.Body, size: resp.ContentLength, tag: validator(resp.Header)}
	switch {
	case resp.StatusCode == http.StatusOK:
		return fl, nil
	case resp.StatusCode == http.StatusPartialContent && offset > 0:
		var err error
		fl.start, fl.size, err = contentRange(resp.Header.Get("Content-Range"))
		if err == nil && fl.start != offset {
			err = fmt.Errorf("asked to continue at byte %d, it continues at %d", offset, fl.start)
		}
		return fl, err
	}
	return nil, &statusError{status: resp.StatusCode, wait: remote.RetryAfter(resp.Header, time.Now())}
}

// validator is what If-Range takes: a strong entity tag, else the date (RFC 9110
// §13.1.5).
func validator(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

// contentRange reads "bytes FIRST-LAST/SIZE", SIZE possibly "*".
func contentRange(text string) (start, size int64, err error) {
	bad := fmt.Errorf("answer 206 with Content-Range %q", text)
	span, total, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	first, last, dash := strings.Cut(span, "-")
	if !ok || !dash || !strings.HasPrefix(text, "bytes ") {
		return 0, 0, bad
	}
	start, err1 := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	if errors.Join(err1, err2) != nil || start < 0 || end < start {
		return 0, 0, bad
	}
	if total == "*" {
		return start, -1, nil
	}
	size, err = strconv.ParseInt(total, 10, 64)
	if err != nil || size <= end {
		return 0, 0, bad
	}
	return start, size, nil
}
