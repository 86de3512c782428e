package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// Blob is something that Artifacts serves.
type Blob struct {
	Path   string // with a leading slash
	SHA256 string // hex
	Size   int64
}

// Artifacts is an HTTP file server over registered blobs. It answers GET and
// HEAD, ranges included, and misbehaves where it is told to. Use NewArtifacts.
type Artifacts struct {
	RequestLog
	handler http.Handler

	mu     sync.Mutex
	blobs  map[string]source
	faults map[string]*Fault
}

type source struct {
	Blob
	open func() (io.ReadSeekCloser, error)
}

// NewArtifacts returns a server without blobs.
func NewArtifacts() *Artifacts {
	a := &Artifacts{blobs: map[string]source{}, faults: map[string]*Fault{}}
	a.handler = a.watch(http.HandlerFunc(a.serve))
	return a
}

// Add registers bytes under path and returns their digest.
func (a *Artifacts) Add(path string, data []byte) Blob {
	sum := sha256.Sum256(data)
	b := Blob{"/" + strings.TrimPrefix(path, "/"), hex.EncodeToString(sum[:]), int64(len(data))}
	a.register(source{b, func() (io.ReadSeekCloser, error) {
		return nopCloser{bytes.NewReader(data)}, nil
	}})
	return b
}

// AddFile registers a file under path. It reads the file once for its digest
// and again for every request.
func (a *Artifacts) AddFile(path, file string) (Blob, error) {
	f, err := os.Open(file)
	if err != nil {
		return Blob{}, fmt.Errorf("add artifact: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return Blob{}, fmt.Errorf("add artifact: %w", err)
	}
	b := Blob{"/" + strings.TrimPrefix(path, "/"), hex.EncodeToString(h.Sum(nil)), size}
	a.register(source{b, func() (io.ReadSeekCloser, error) { return os.Open(file) }})
	return b, nil
}

func (a *Artifacts) register(s source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.blobs[s.Path] = s
}

// Blobs returns what is registered.
func (a *Artifacts) Blobs() []Blob {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []Blob
	for _, s := range a.blobs {
		all = append(all, s.Blob)
	}
	return all
}

func (a *Artifacts) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

func (a *Artifacts) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	blob, found := a.blobs[r.URL.Path]
	fault := a.take(r.URL.Path)
	a.mu.Unlock()
	switch {
	case fault.Status != 0:
		http.Error(w, http.StatusText(fault.Status), fault.Status)
		return
	case !found:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	body, err := blob.open()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer body.Close()
	w.Header().Set("ETag", `"`+blob.SHA256+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(fault.wrap(w, r), r, blob.Path, time.Time{}, body)
}

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }
