package bundle

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/oci"
)

// hasty gives up soon.
var hasty = patience{asks: 3, stall: 150 * time.Millisecond, manifest: 150 * time.Millisecond, pause: time.Millisecond}

// mood is a registry of one manifest and one layer; each request is answered by
// the next of its answers, the last of which stands for all others.
type mood struct {
	layer   []byte
	asked   atomic.Int32
	answers []func(http.ResponseWriter, *http.Request, []byte)
}

func (m *mood) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n := int(m.asked.Add(1)) - 1
	m.answers[min(n, len(m.answers)-1)](w, req, m.layer)
}

// image is that of the registry, and its layer's descriptor.
func (m *mood) image(t *testing.T) (*registryImage, ocispec.Descriptor) {
	t.Helper()
	s, opened := httptest.NewUnstartedServer(m), newPipes()
	_ = s.Listener.Close()
	s.Listener = opened
	s.StartTLS()
	client := s.Client()
	client.Transport.(*http.Transport).DialContext = opened.dial
	t.Cleanup(func() { client.CloseIdleConnections(); s.CloseClientConnections(); s.Close() })
	ref, err := oci.Parse(oci.Scheme + strings.TrimPrefix(s.URL, "https://") + "/team/app:1")
	if err != nil {
		t.Fatal(err)
	}
	d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: digest.FromBytes(m.layer), Size: int64(len(m.layer))}
	return &registryImage{client: &remote.Client{HTTP: client}, ref: ref, patience: hasty,
		root: &held{ocispec.Descriptor{Digest: "sha256:" + digest.Digest(sum([]byte("root")))}, nil}}, d
}

func mute(_ http.ResponseWriter, req *http.Request, _ []byte) { <-req.Context().Done() }

func whole(w http.ResponseWriter, _ *http.Request, raw []byte) { _, _ = w.Write(raw) }

func half(w http.ResponseWriter, _ *http.Request, raw []byte) { part(w, raw, len(raw)/2) }

func quarter(w http.ResponseWriter, _ *http.Request, raw []byte) { part(w, raw, len(raw)/4) }

// part breaks off after n bytes of those that it promises.
func part(w http.ResponseWriter, raw []byte, n int) {
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	_, _ = w.Write(raw[:n])
}

// slow sends all of it, whatever was asked for, in longer than the client's
// patience, and never nothing for as long.
func slow(w http.ResponseWriter, _ *http.Request, raw []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	for part := range bytes.SplitSeq(bytes.ReplaceAll(raw, []byte("."), []byte(". ")), []byte(" ")) {
		_, _ = w.Write(part)
		_ = http.NewResponseController(w).Flush()
		<-time.After(hasty.stall / 5)
	}
}

func TestResumed(t *testing.T) {
	layer := []byte(strings.Repeat("0123456789.", 20))
	type answers = []func(http.ResponseWriter, *http.Request, []byte)
	for name, c := range map[string]struct {
		answers answers
		asked   int32
		want    string
	}{
		"whole":                        {answers{whole}, 1, ""},
		"mute, then whole":             {answers{mute, whole}, 2, ""},
		"half, mute, then whole":       {answers{half, mute, whole}, 3, ""},
		"half, then all of it, slowly": {answers{half, slow}, 2, ""},
		"mute for good":                {answers{mute}, 3, "no data for 150ms"},
		"never beyond the half":        {answers{half}, 3, "unexpected EOF"},
		"never up to the half":         {answers{half, quarter}, 4, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &mood{layer: layer, answers: c.answers}
				image, d := m.image(t)
				in, err := image.Open(t.Context(), d)
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				got, err := io.ReadAll(in)
				if c.want == "" && (err != nil || !bytes.Equal(got, layer)) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
				if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%v, want %s", err, c.want)
				}
				if m.asked.Load() != c.asked {
					t.Errorf("asked %d times, want %d", m.asked.Load(), c.asked)
				}
			})
		})
	}
}

// TestDocumentIsGivenUp: a manifest whose bytes stop coming is asked for again.
func TestDocumentIsGivenUp(t *testing.T) {
	synctest.Test(t, documentIsGivenUp)
}

func documentIsGivenUp(t *testing.T) {
	manifest := `{"schemaVersion":2,"mediaType":"` + ocispec.MediaTypeImageManifest + `","config":{"mediaType":"x","digest":"sha256:` + sum(nil) + `","size":0},"layers":[]}`
	answer := func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		_, _ = io.WriteString(w, manifest)
	}
	stops := func(w http.ResponseWriter, req *http.Request, _ []byte) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		_, _ = io.WriteString(w, manifest[:9])
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	}
	m := &mood{answers: []func(http.ResponseWriter, *http.Request, []byte){stops, answer}}
	image, _ := m.image(t)
	image.root = nil
	if _, err := image.Root(t.Context()); err != nil || m.asked.Load() != 2 {
		t.Errorf("asked %d times: %v", m.asked.Load(), err)
	}
	m = &mood{answers: []func(http.ResponseWriter, *http.Request, []byte){stops}}
	image, _ = m.image(t)
	image.root = nil
	if _, err := image.Root(t.Context()); err == nil || !strings.Contains(err.Error(), "no whole answer in 150ms") || m.asked.Load() != 3 {
		t.Errorf("asked %d times: %v", m.asked.Load(), err)
	}
}
