package decode

import (
	"net/url"
	"regexp"
	"slices"
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
	// The length of what is captured is checked apart: counted repetitions make an expression a
	// hundred times as large.
	versionForm  = `(?::([A-Za-z0-9_][A-Za-z0-9_.-]*))?(?:@sha256:([0-9a-f]+))?`
	fragmentForm = `(?:#sha256=([0-9A-Fa-f]+))?`

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

const (
	longestTag = 128
	sumLength  = 64 // hex digits of a SHA-256
)

// isOf says whether a text has a form that ends with a version, and perhaps a fragment.
func isOf(form *regexp.Regexp, s string) bool {
	m := form.FindStringSubmatch(s)
	if m == nil || len(m[1]) > longestTag {
		return false
	}
	return !slices.ContainsFunc(m[2:], func(sum string) bool { return sum != "" && len(sum) != sumLength })
}

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
	return unless(isOf(imageForm(), s), "expected an image, e.g. registry.example/oss/pause:3.10, without scheme")
}
