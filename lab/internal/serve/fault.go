package serve

import (
	"net/http"
	"time"
)

// Fault is how one path of Artifacts misbehaves.
type Fault struct {
	// Times is how many requests are hit; 0 means all. Later ones are served
	// as they should be.
	Times int
	// Status is sent instead of the blob, 404 or 503 for example.
	Status int
	// FlipAt changes one bit of the byte at this offset plus one, so the
	// length is right and the digest is wrong. 0 means none.
	FlipAt int64
	// CutAfter sends so many bytes of the promised length and cuts the
	// connection. 0 means never.
	CutAfter int64
	// StallAfter sends so many bytes, then nothing, and keeps the connection
	// until the client leaves. 0 means never.
	StallAfter int64
	// BytesPerSecond limits the speed. 0 means no limit.
	BytesPerSecond int64
}

// Faults that most tests want.
var (
	WrongDigest = Fault{FlipAt: 1}
	Truncated   = Fault{CutAfter: 512}
	NotFound    = Fault{Status: http.StatusNotFound}
)

// FailFirst answers the first n requests with status.
func FailFirst(n, status int) Fault { return Fault{Times: n, Status: status} }

// Slow limits the speed of each request.
func Slow(bytesPerSecond int64) Fault { return Fault{BytesPerSecond: bytesPerSecond} }

// SetFault makes path misbehave from the next request on. The zero Fault heals
// it. A path may have a fault before it has a blob.
func (a *Artifacts) SetFault(path string, f Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f == (Fault{}) {
		delete(a.faults, path)
		return
	}
	a.faults[path] = &f
}

// take returns the fault that hits this request and counts it.
func (a *Artifacts) take(path string) Fault {
	f, ok := a.faults[path]
	if !ok {
		return Fault{}
	}
	hit := *f
	if f.Times == 1 {
		delete(a.faults, path)
	}
	f.Times = max(f.Times-1, 0)
	return hit
}

func (f Fault) wrap(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if f.FlipAt == 0 && f.CutAfter == 0 && f.StallAfter == 0 && f.BytesPerSecond == 0 {
		return w
	}
	return &faultyWriter{ResponseWriter: w, fault: f, request: r}
}

// faultyWriter counts what it wrote in this answer, so offsets of a range
// request count from the range's start.
type faultyWriter struct {
	http.ResponseWriter
	fault   Fault
	request *http.Request
	written int64
}

// step keeps a slow answer smooth and a cut exact.
const step = 4096

func (w *faultyWriter) Write(p []byte) (int, error) {
	total := 0
	for len(p) > 0 {
		n, err := w.writePart(p[:w.allowed(len(p))])
		total += n
		if err != nil {
			return total, err
		}
		p = p[n:]
	}
	return total, nil
}

// allowed is how much may be sent before a fault is due; it ends the answer
// when one is due now.
func (w *faultyWriter) allowed(want int) int {
	n := int64(min(want, step))
	for _, limit := range []int64{w.fault.CutAfter, w.fault.StallAfter} {
		if limit == 0 {
			continue
		}
		if w.written >= limit {
			w.end(limit == w.fault.StallAfter)
		}
		n = min(n, limit-w.written)
	}
	return int(n)
}

func (w *faultyWriter) end(stall bool) {
	_ = http.NewResponseController(w.ResponseWriter).Flush() // the cut follows anyway
	if stall {
		<-w.request.Context().Done()
	}
	panic(http.ErrAbortHandler)
}

func (w *faultyWriter) writePart(p []byte) (int, error) {
	if at := w.fault.FlipAt - 1 - w.written; w.fault.FlipAt > 0 && at >= 0 && at < int64(len(p)) {
		p = append([]byte(nil), p...)
		p[at] ^= 1
	}
	if rate := w.fault.BytesPerSecond; rate > 0 {
		if err := sleep(w.request.Context(), time.Duration(len(p))*time.Second/time.Duration(rate)); err != nil {
			return 0, err
		}
	}
	n, err := w.ResponseWriter.Write(p)
	w.written += int64(n)
	return n, err
}

func (w *faultyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
