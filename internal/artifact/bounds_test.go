package artifact

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// sparse is an archive of a file that is almost all hole.
func sparse(t *testing.T, name string, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	content := make([]byte, 512)
	copy(content, fmt.Sprintf("1\n%d\n0\n", size))
	err := w.WriteHeader(&tar.Header{Name: "x", Size: int64(len(content)), Mode: 0o755, Format: tar.FormatPAX, PAXRecords: map[string]string{
		// The writer refuses the real names.
		"XNU.sparse.major": "1", "XNU.sparse.minor": "0", "XNU.sparse.name": name, "XNU.sparse.realsize": strconv.Itoa(size),
	}})
	if _, more := w.Write(content); errors.Join(err, more, w.Close()) != nil {
		t.Fatal(err, more)
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("XNU.sparse"), []byte("GNU.sparse"))
}

// What comes out of an archive is bounded, however little goes in.
func TestUnpackedSizeIsBounded(t *testing.T) {
	for name, content := range map[string][]byte{
		"a hole":     sparse(t, "bin/kubelet", 64<<20),
		"the member": gzipOf(t, tarOf(t, tarMember{name: "bin/kubelet", content: strings.Repeat("x", 1<<21)})),
		"before it":  gzipOf(t, tarOf(t, tarMember{name: "a", content: strings.Repeat("x", 1<<21)}, tarMember{name: "bin/kubelet", content: "K"})),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, always(content))
			m := memory.New()
			_, err := s.fetcher(Options{MaxUnpacked: 1 << 20}).Stage(t.Context(), m, kubelet("bin/kubelet", s.tls.URL))
			if !errors.As(err, new(*UnpackError)) || !strings.Contains(err.Error(), "more than the bound") || s.hits.Load() != 1 {
				t.Errorf("after %d requests: %v", s.hits.Load(), err)
			}
			if staged, err := m.ReadFile(temp); err == nil {
				t.Errorf("%d bytes are there", len(staged))
			}
		})
	}
}

// A download that says itself that it is too large is not read.
func TestTooLargeByItsOwnWord(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	_, err := s.fetcher(Options{MaxBytes: 1000}).Stage(t.Context(), memory.New(), kubelet("", s.tls.URL+"/k"))
	if e, ok := errors.AsType[*UnpackError](err); !ok || e.URL != s.tls.URL+"/k" || !strings.Contains(err.Error(), "larger than the bound") || s.hits.Load() != 1 {
		t.Errorf("after %d requests: %v", s.hits.Load(), err)
	}
}

// One member may be wanted under several names.
func TestMemberUnderTwoNames(t *testing.T) {
	s := newSite(t, always(tarOf(t, tarMember{name: "bin/kubelet", content: "K"})))
	m := memory.New()
	a := kubelet("bin/kubelet", s.tls.URL)
	a.Files = append(a.Files, desired.ArtifactFile{Member: "./bin/kubelet", Path: "/usr/local/bin/hyper", Mode: 0o700})
	install(t, s.fetcher(Options{}), m, a)
	if tree := m.Tree("/usr/local/bin"); tree["/usr/local/bin/kubelet"] != "-rwxr-xr-x 0:0 K" || tree["/usr/local/bin/hyper"] != "-rwx------ 0:0 K" {
		t.Errorf("got %v", tree)
	}
}
