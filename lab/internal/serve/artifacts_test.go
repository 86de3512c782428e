package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

func start(t *testing.T, h http.Handler) string {
	t.Helper()
	s := Start(listen(t), h)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.URL()
}

// get returns what arrived of the body, and how it ended.
func get(t *testing.T, url string, header ...string) (int, []byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

func TestArtifacts(t *testing.T) {
	data := bytes.Repeat([]byte("berth"), 4000)
	file := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	a := NewArtifacts()
	blob, err := a.AddFile("file.tgz", file)
	if err != nil {
		t.Fatal(err)
	}
	if same := a.Add("/bytes.tgz", data); same.SHA256 != blob.SHA256 || same.Size != 20000 || len(a.Blobs()) != 2 {
		t.Errorf("blobs differ: %+v and %+v", same, blob)
	}
	url := start(t, a)
	for _, path := range []string{"/file.tgz", "/bytes.tgz"} {
		if status, got, err := get(t, url+path); status != 200 || err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: status %d, %d bytes, %v", path, status, len(got), err)
		}
	}
	if status, got, _ := get(t, url+"/file.tgz", "Range", "bytes=19990-"); status != 206 || !bytes.Equal(got, data[19990:]) {
		t.Errorf("range: status %d, %q", status, got)
	}
	if status, _, _ := get(t, url+"/other"); status != 404 {
		t.Errorf("unknown path: status %d", status)
	}
	entry, err := a.Wait(t.Context(), func(r Request) bool { return r.Path == "/other" })
	if err != nil || entry.Status != 404 {
		t.Errorf("log: %+v, %v", entry, err)
	}
	if n, sent := a.Count("/file.tgz"); n != 2 || sent != 20010 {
		t.Errorf("%d requests, %d bytes", n, sent)
	}
}

func TestFaults(t *testing.T) {
	data := bytes.Repeat([]byte{7}, 20000)
	flipped := bytes.Clone(data)
	flipped[9999] ^= 1
	a := NewArtifacts()
	url := start(t, a) + "/blob"
	tests := map[string]struct {
		fault  Fault
		status int
		want   []byte
		err    error // nil means a whole answer
	}{
		"wrong digest": {Fault{FlipAt: 10000}, 200, flipped, nil},
		"truncated":    {Fault{CutAfter: 5000}, 200, data[:5000], io.ErrUnexpectedEOF},
		"stalled":      {Fault{StallAfter: 5000}, 200, data[:5000], context.DeadlineExceeded},
		"missing":      {NotFound, 404, []byte("Not Found\n"), nil},
		"healed":       {Fault{}, 200, data, nil},
	}
	a.Add("/blob", data)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a.SetFault("/blob", test.fault)
			status, got, err := get(t, url)
			if status != test.status || !bytes.Equal(got, test.want) || !errors.Is(err, test.err) {
				t.Errorf("status %d, %d bytes, %v", status, len(got), err)
			}
		})
	}
}

func TestFailFirst(t *testing.T) {
	a := NewArtifacts()
	a.Add("/blob", []byte("x"))
	a.SetFault("/blob", FailFirst(2, 503))
	url := start(t, a) + "/blob"
	for i, want := range []int{503, 503, 200, 200} {
		if status, _, _ := get(t, url); status != want {
			t.Errorf("request %d: status %d, want %d", i, status, want)
		}
	}
}

func TestSlow(t *testing.T) {
	a := NewArtifacts()
	a.Add("/blob", make([]byte, 40960))
	a.SetFault("/blob", Slow(200_000))
	began := time.Now()
	if _, got, err := get(t, start(t, a)+"/blob"); err != nil || len(got) != 40960 {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("40 KiB at 200 kB/s took only %s", took)
	}
}
