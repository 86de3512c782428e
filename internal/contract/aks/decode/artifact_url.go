package decode

import (
	"net/url"
	"path"
	"strings"
)

// ArtifactURL is where an artifact comes from, as a URL with the scheme https, http, file or oci. The last may
// be missing before a reference whose registry can't be taken for a directory, as the published scripts have it.
// It answers false for what no artifact comes from.
func ArtifactURL(s string) (string, bool) {
	u := s
	if !strings.Contains(s, "://") && isOf(bareReference(), s) {
		u = ociScheme + s
	}
	return u, isWeb(u) || isFile(u) || isReference(u)
}

const ociScheme = "oci://"

func isReference(s string) bool {
	return strings.HasPrefix(s, ociScheme) && isOf(referenceForm(), s) && isAuthority(s)
}

func isFile(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "file" && u.Host == "" && u.RawQuery == "" && oneLine(u.Path) == "" && path.IsAbs(u.Path) && path.Clean(u.Path) == u.Path
}

func artifactURL(s string) string {
	_, ok := ArtifactURL(s)
	return unless(ok, "expected where it comes from: a URL (https, http, or file with an absolute path) or an OCI reference, e.g. registry.example/oss/kubernetes:v1")
}
