package cli

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A package comes to its place whole, as it was promised, or not at all.
func TestFetchPackage(t *testing.T) {
	const content = "!<arch>\ndebian-binary and the rest, which is not taken apart"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }))
	defer server.Close()
	for sum, want := range map[string]string{fmt.Sprintf("%x", sha256.Sum256([]byte(content))): content, fmt.Sprintf("%x", sha256.Sum256(nil)): "", "": ""} {
		h := memory.New()
		if _, err := host.MkdirAll(h, "/var/lib/berth"); err != nil {
			t.Fatal(err)
		}
		err := (&parts{host: h}).fetchPackage(t.Context(), &desired.Artifact{Name: component.ArcPackage, URLs: []string{server.URL + "/a.deb"}, SHA256: sum,
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
