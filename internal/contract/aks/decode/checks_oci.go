package decode

import (
	"net/url"
	"strings"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// The grammar of references. internal/oci, which reads them, is not imported because clients link this
// package; a test compares.
const (
	labelForm      = `[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?`
	nameForm       = labelForm + `(?:\.` + labelForm + `)*`
	bracketForm    = `\[[0-9A-Fa-f:.]+\]`
	portForm       = `(?::[0-9]+)?`
	partForm       = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	repositoryForm = partForm + `(?:/` + partForm + `)*`
	versionForm    = `(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?`
	fragmentForm   = `(?:#sha256=[0-9A-Fa-f]{64})?`

	registryName = `(?:` + nameForm + `|` + bracketForm + `)` + portForm
	// plainRegistry can't be taken for a directory: it has a dot, a port or brackets, or is localhost.
	plainRegistry = `(?:` + labelForm + `(?:\.` + labelForm + `)+` + portForm + `|` + labelForm + `:[0-9]+|` + bracketForm + portForm + `|localhost)`
)

var (
	referenceForm = lazyregexp.New(`^oci://` + registryName + `/` + repositoryForm + versionForm + fragmentForm + `$`)
	bareReference = lazyregexp.New(`^` + plainRegistry + `/` + repositoryForm + versionForm + fragmentForm + `$`)
	registryForm  = lazyregexp.New(`^` + registryName + `(?:/` + repositoryForm + `)?/?$`)
	imageForm     = lazyregexp.New(`^(?:` + registryName + `/)?` + repositoryForm + versionForm + `$`)
)

// isAuthority checks what the grammar can't say of the host and port of a URL.
func isAuthority(s string) bool {
	u, err := url.Parse(s)
	return err == nil && validPort(u) && (!strings.HasPrefix(u.Host, "[") || isAddress(u.Hostname()))
}

// registry is host[:port][/path].
func registry(s string) string {
	return unless(registryForm().MatchString(s) && isAuthority("https://"+s), "expected a registry, host[:port][/path], without scheme")
}

// image is as the runtime takes it: the registry may be missing.
func image(s string) string {
	return unless(imageForm().MatchString(s), "expected an image, e.g. registry.example/oss/pause:3.10, without scheme")
}
