package serve

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is one request that a server answered.
type Request struct {
	Time   time.Time
	From   string // host:port of the client
	Method string
	Path   string // without the query
	Query  string
	Header http.Header
	Status int   // 0: cut before a status was sent
	Bytes  int64 // of the body that was sent
}

// RequestLog remembers requests, in the order in which they ended.
// The zero value is ready.
type RequestLog struct {
	mu      sync.Mutex
	entries []Request
	changed chan struct{}
}

// Requests returns a copy of the log.
func (l *RequestLog) Requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Count returns how many requests for path there were, and the bytes of all
// their bodies.
func (l *RequestLog) Count(path string) (requests int, bytes int64) {
	for _, r := range l.Requests() {
		if r.Path == path {
			requests++
			bytes += r.Bytes
		}
	}
	return requests, bytes
}

// Clear forgets all requests.
func (l *RequestLog) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// Wait returns the first request, past or to come, that match accepts.
func (l *RequestLog) Wait(ctx context.Context, match func(Request) bool) (Request, error) {
	for seen := 0; ; {
		fresh, changed := l.since(seen)
		if i := slices.IndexFunc(fresh, match); i >= 0 {
			return fresh[i], nil
		}
		seen += len(fresh)
		select {
		case <-ctx.Done():
			return Request{}, fmt.Errorf("wait for a request: %w", ctx.Err())
		case <-changed:
		}
	}
}

func (l *RequestLog) since(n int) ([]Request, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return slices.Clone(l.entries[min(n, len(l.entries)):]), l.changed
}

func (l *RequestLog) add(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, r)
	if l.changed != nil {
		close(l.changed)
	}
	l.changed = make(chan struct{})
}

// watch logs every request to h, also one that h cuts.
func (l *RequestLog) watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entry := Request{
			Time: time.Now(), From: r.RemoteAddr, Method: r.Method,
			Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(),
		}
		cw := &countingWriter{ResponseWriter: w}
		defer func() {
			entry.Status, entry.Bytes = cw.status, cw.bytes
			l.add(entry)
		}()
		h.ServeHTTP(cw, r)
		if cw.status == 0 {
			cw.status = http.StatusOK
		}
	})
}

type countingWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *countingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach Flush and the deadlines.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
