package decode

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// ArtifactURL is where an artifact comes from, as a URL with the scheme https, http, file or oci. The last may
// be missing before a reference whose registry can't be taken for a directory, as the published scripts have it.
// It answers false for what no artifact comes from.
func ArtifactURL(s string) (string, bool) {
	u := s
	if bareReference.MatchString(s) {
		u = ociScheme + s
	}
	return u, isWeb(u) || isFile(u) || isReference(u)
}

const ociScheme = "oci://"

// What internal/artifact/oci reads, which is not imported because clients link this package; a test compares.
const (
	hostForm       = `[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?`
	repositoryForm = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	afterRegistry  = `(?:/` + repositoryForm + `)+(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?(?:#sha256=[0-9A-Fa-f]{64})?$`
)

var (
	referenceForm = regexp.MustCompile(`^oci://(?:` + hostForm + `(?:\.` + hostForm + `)*|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?` + afterRegistry)
	// bareReference has a registry with a dot, a port or brackets, or localhost.
	bareReference = regexp.MustCompile(`^(?:` + hostForm + `(?:\.` + hostForm + `)+(?::[0-9]+)?|` + hostForm + `:[0-9]+|\[[0-9A-Fa-f:.]+\](?::[0-9]+)?|localhost)` + afterRegistry)
)

func isReference(s string) bool {
	if !referenceForm.MatchString(s) {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && validPort(u) && (!strings.HasPrefix(u.Host, "[") || ip(u.Hostname()) == "")
}

func isFile(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "file" && u.Host == "" && u.RawQuery == "" && oneLine(u.Path) == "" && path.IsAbs(u.Path) && path.Clean(u.Path) == u.Path
}

func artifactURL(s string) string {
	_, ok := ArtifactURL(s)
	return unless(ok, "expected where it comes from: a URL (https, http, or file with an absolute path) or an OCI reference, e.g. registry.example/oss/kubernetes:v1")
}
