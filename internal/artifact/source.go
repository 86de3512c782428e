package artifact

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// source is a URL and what is known of its content.
type source struct {
	url *url.URL
	// digest is sha256 in hex, from says who promised it; both empty if nobody
	// did.
	digest, from string
}

// shown is the URL without what may be a secret.
func (s source) shown() string { return shown(s.url) }

func shown(u *url.URL) string {
	v := *u
	v.Fragment, v.RawFragment, v.RawQuery, v.User = "", "", "", nil
	return v.String()
}

// parseSource reads a URL of an artifact: its digest is, in this order, the
// URL's fragment, the contract's, the one that the machine's own list gives.
// Two that differ are refused.
func parseSource(raw string, a *desired.Artifact, known digests) (source, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return source{}, &RefusedError{URL: strings.SplitN(raw, "?", 2)[0], Reason: "not an http or https URL"}
	}
	s := source{url: u}
	fragment, err := fragmentDigest(u.Fragment)
	if err != nil {
		return source{}, &RefusedError{URL: s.shown(), Reason: err.Error()}
	}
	u.Fragment, u.RawFragment = "", ""
	for _, d := range []struct{ digest, from string }{
		{fragment, "the URL"}, {strings.ToLower(a.SHA256), "the contract"}, {known[u.String()], "/etc/berth/artifacts.d"},
	} {
		if d.digest != "" && s.digest != "" && d.digest != s.digest {
			return source{}, &RefusedError{URL: s.shown(), Reason: fmt.Sprintf("%s and %s give different digests", s.from, d.from)}
		}
		if s.digest == "" && d.digest != "" {
			s.digest, s.from = d.digest, d.from
		}
	}
	if u.Scheme == "http" && s.digest == "" {
		return source{}, &RefusedError{URL: s.shown(), Reason: "plain http needs a digest"}
	}
	return s, nil
}

// fragmentDigest reads "sha256=<64 hex digits>".
func fragmentDigest(fragment string) (string, error) {
	if fragment == "" {
		return "", nil
	}
	text, ok := strings.CutPrefix(fragment, "sha256=")
	if !ok {
		return "", errors.New("its fragment is not of the form #sha256=<64 hex digits>")
	}
	return checkDigest(text)
}

func checkDigest(text string) (string, error) {
	text = strings.ToLower(text)
	if b, err := hex.DecodeString(text); err != nil || len(b) != 32 {
		return "", errors.New("a sha256 has 64 hex digits")
	}
	return text, nil
}
