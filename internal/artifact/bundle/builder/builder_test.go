package builder

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/machine"
)

// made runs Build for artifacts of a server; it leaves nothing beside the file.
func made(ctx context.Context, t *testing.T, server *httptest.Server, platform, artifacts string) (file string, err error) {
	t.Helper()
	h, err := machine.New("/")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err = Build(ctx, Options{
		Host: h, UID: os.Geteuid(), GID: os.Getegid(), Client: server.Client(), Observer: func(converge.Span) {}, Say: func(string) {},
	}, Request{Platform: platform, Artifacts: []string{artifacts}}, filepath.Join(dir, "a.bundle"), nil)
	left, globErr := filepath.Glob(filepath.Join(dir, ".berth.*"))
	if globErr != nil || len(left) > 0 {
		t.Errorf("%v: left are %v", globErr, left)
	}
	return filepath.Join(dir, "a.bundle"), err
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("some"))
		_ = http.NewResponseController(w).Flush()
		cancel(exitcode.ErrInterrupted)
		<-r.Context().Done()
	}))
	defer server.Close()
	if _, err := made(ctx, t, server, "linux/amd64", "x="+server.URL+"/x"); !errors.Is(err, exitcode.ErrInterrupted) {
		t.Errorf("error %v", err)
	}
}

func TestSandboxImage(t *testing.T) {
	for config, want := range map[string]string{
		"[plugins.'io.containerd.grpc.v1.cri']\nsandbox_image = 'a'":                        "a",
		"[plugins.'io.containerd.cri.v1.images'.pinned_images]\nsandbox = 'b'\nother = 'c'": "b", "": "",
	} {
		if got, err := sandboxImage([]byte(config)); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	bad := &desired.State{}
	bad.Add(&desired.File{Path: "/etc/containerd/config.toml", Content: desired.Text("["), Life: desired.Managed})
	if _, err := wantedOf(bad); err == nil {
		t.Error("no error")
	}
}

func TestParseArtifact(t *testing.T) {
	pinned := fmt.Sprintf("sha256:%x", sha256.Sum256(nil))
	for text, want := range map[string]artifactFlag{
		"./x.tar.gz":                        {name: "x.tar.gz", source: "./x.tar.gz"},
		"k@v1.36.3=https://e.example/k?a=b": {name: "k", version: "1.36.3", source: "https://e.example/k?a=b"},
		"https://e.example/d/k.tgz?a=b":     {name: "k.tgz", source: "https://e.example/d/k.tgz?a=b"},
		"k=f#sha256=AB":                     {name: "k", source: "f", sha256: "ab"},
		"oci://r.example/a:1":               {name: "a", source: "oci://r.example/a:1"},
		"oci://r.example/b/a@" + pinned:     {name: "a", source: "oci://r.example/b/a@" + pinned},
	} {
		got, err := parseArtifact(text)
		if d := cmp.Diff(want, got, cmp.AllowUnexported(artifactFlag{})); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", text, err, d)
		}
	}
}

// TestFailedFetch: a download has a hint here, too.
func TestFailedFetch(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	_, err := made(t.Context(), t, server, "linux/amd64", "x="+server.URL+"/x")
	e, ok := errors.AsType[*exitcode.Error](err)
	if !ok || !strings.Contains(e.Hint(), "the server has no such file") {
		t.Errorf("error %v", err)
	}
	if d, ok := errors.AsType[*artifact.DownloadError](err); !ok || d.Status != http.StatusNotFound {
		t.Errorf("error %v", err)
	}
}

// TestForAnotherPlatform makes bundles for two architectures, one of which is not
// this machine's.
func TestForAnotherPlatform(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		server := shelf(t)
		file, err := made(t.Context(), t, server, "linux/"+arch, strings.Replace(server.URL, "https", "tool=oci", 1)+"/tool:1")
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		f, size, err := bundle.OpenRegular(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b, err := bundle.Open(f, size)
		if err != nil {
			t.Fatal(err)
		}
		in, err := b.Blob(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(elfOf(arch)))))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, in); err != nil {
			t.Error(err)
		}
	}
}
