package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A package comes whole, as it was promised, or not at all.
func TestFetchFile(t *testing.T) {
	const content = "!<arch>\ndebian-binary and the rest, which is not taken apart"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }))
	defer server.Close()
	for sum, want := range map[string]string{fmt.Sprintf("%x", sha256.Sum256([]byte(content))): content, fmt.Sprintf("%x", sha256.Sum256(nil)): "", "": ""} {
		h := memory.New()
		if _, err := host.MkdirAll(h, "/var/lib/berth"); err != nil {
			t.Fatal(err)
		}
		err := New(Options{RequireDigests: true}).FetchFile(t.Context(), h, &desired.Artifact{Name: component.ArcPackage, URLs: []string{server.URL + "/a.deb"}, SHA256: sum,
			Files: []desired.ArtifactFile{{Path: component.ArcPackageFile, Mode: 0o600}}})
		got, _ := h.ReadFile(component.ArcPackageFile) // it may not be there
		if (err == nil) != (want != "") || string(got) != want {
			t.Errorf("%q: %q, %v", sum, got, err)
		}
		if info, err := h.Lstat(component.ArcPackageFile); want != "" && (err != nil || info.Mode.Perm() != 0o600) {
			t.Errorf("%v, %v", info.Mode, err)
		}
	}
}

// A package of which the document says no more than that it is wanted comes out of the
// machine's bundle; without one it is refused.
func TestFetchFileOutOfABundle(t *testing.T) {
	const content = "!<arch>\ndebian-binary out of a bundle"
	var packed bytes.Buffer
	spec := bundle.Spec{Platform: "linux/" + runtime.GOARCH, Artifacts: []bundle.ArtifactSpec{{Name: component.ArcPackage, Content: bundle.Content{
		Local: true, Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}}}}
	if _, err := bundle.Create(t.Context(), spec, nil, nil, &packed); err != nil {
		t.Fatal(err)
	}
	wanted := &desired.Artifact{Name: component.ArcPackage, Files: []desired.ArtifactFile{{Path: component.ArcPackageFile, Mode: 0o600}}}
	for _, there := range []bool{true, false} {
		h := memory.New()
		h.PutDir("/var/lib/berth")
		if there {
			h.Put(BundleDir+"/site.bundle", packed.String(), 0o600)
		}
		err := New(Options{RequireDigests: true}).FetchFile(t.Context(), h, wanted)
		got, _ := h.ReadFile(component.ArcPackageFile) // it may not be there
		if there && (err != nil || string(got) != content) || !there && (err == nil || got != nil || !strings.Contains(err.Error(), component.ArcPackage)) {
			t.Errorf("a bundle: %v; %q, %v", there, got, err)
		}
	}
}
