package desired

import (
	"net/url"
	"strings"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

var (
	// loginForm is what may be user:password@ in a text.
	loginForm  = lazyregexp.New(`:.*@`)
	schemeForm = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	pinForm    = lazyregexp.New(`@sha256:[0-9a-f]{64}$`)
	portForm   = lazyregexp.New(`^[^:]*:[0-9]*$|^\[[^\]]*\](:[0-9]*)?$`)
)

// BareURL is a URL as it may be shown: without user, query and fragment, which
// may be secrets. Of a text that is no URL it takes more away than that, and
// puts … there: what looks like a password to one reader is a path to another.
// The digest that pins an image stays.
func BareURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || !isAuthority(u.Host) {
		return bareOdd(text)
	}
	if loginForm().MatchString(pinForm().ReplaceAllString(u.EscapedPath(), "")) {
		return bareOdd(text)
	}
	text = beforeQuery(text)
	if u.User == nil {
		return text
	}
	scheme, rest, _ := strings.Cut(text, "//")
	host, path := cutAuthority(rest)
	return scheme + "//" + host[strings.LastIndexByte(host, '@')+1:] + path
}

func beforeQuery(text string) string {
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		return text[:i]
	}
	return text
}

// isAuthority says whether all behind a colon is a port; url.Parse allows more.
func isAuthority(text string) bool {
	return !strings.Contains(text, ":") || portForm().MatchString(text)
}

func cutAuthority(text string) (authority, path string) {
	if i := strings.IndexByte(text, '/'); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// bareOdd takes away what could be a secret of what does not parse.
func bareOdd(text string) string {
	scheme := schemeForm().FindString(text)
	rest := text[len(scheme):]
	pin := pinForm().FindString(rest)
	rest = strings.TrimSuffix(rest, pin)
	at, query := strings.LastIndexByte(rest, '@'), strings.IndexAny(rest, "?#")
	if query >= 0 && (pin != "" || query < at) {
		return scheme + "…" // a query with an @ in it, or a password with ? or #
	}
	if at >= 0 {
		scheme, rest = scheme+"…@", rest[at+1:]
	}
	host, path := cutAuthority(beforeQuery(rest))
	if scheme != "" && !isAuthority(host) {
		host = host[:strings.IndexByte(host, ':')] + ":…" // no port: a password whose @ was forgotten
	}
	return scheme + host + path + pin
}

// RedactURL is BareURL, with the digest in the fragment, and with what stands for
// a user, a password or a query, so that a change of them shows.
func RedactURL(text string) string {
	address, fragment, _ := strings.Cut(text, "#")
	bare := BareURL(address)
	if bare != address {
		bare += "?" + Redact([]byte(address))
	}
	if digestForm().MatchString(fragment) {
		bare += "#" + fragment
	}
	return bare
}

var digestForm = lazyregexp.New(`^sha256=[0-9a-fA-F]{64}$`)

var wordForm = lazyregexp.New("[^\\s\"'`<>()]+")

// BareText is a text, such as an error's of a library, with each URL in it as
// BareURL shows it.
func BareText(text string) string {
	return wordForm().ReplaceAllStringFunc(text, func(word string) string {
		address := pinForm().ReplaceAllString(word, "")
		if strings.Contains(address, "://") || strings.Contains(address, "?") || loginForm().MatchString(address) {
			return BareURL(word)
		}
		return word
	})
}
