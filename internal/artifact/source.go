package artifact

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/oci"
)

// source is a URL, what is known of its content and how to come by it.
type source struct {
	url    *url.URL
	origin origin
	// digest is sha256 in hex, from says who promised it; both empty if nobody
	// did.
	digest, from string
	// stock is set for a reference to a registry; pin is the digest of the manifest
	// in hex if the reference gives it.
	stock *stock
	pin   string
	// named: a bundle holds it under the document's own URL.
	named bool
	// dead: no further try will change what it answers. until: it asked to be left
	// alone.
	dead  bool
	until time.Time
}

func (s *source) alive() bool { return !s.dead }

func (s *source) resting(now time.Time) bool { return now.Before(s.until) }

// shown is the URL without what may be a secret.
func (s *source) shown() string { return shown(s.url) }

func shown(u *url.URL) string {
	v := *u
	v.Fragment, v.RawFragment, v.RawQuery, v.User = "", "", "", nil
	return v.String()
}

// parseSource reads a URL of an artifact: its digest is, in this order, the
// URL's fragment, the contract's, the one that the machine's own list gives.
// Two that differ are refused.
func (f *Fetcher) parseSource(h host.FS, raw string, a *desired.Artifact, known digests) (*source, error) {
	u, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	s := &source{url: u}
	fragment, err := fragmentDigest(u.Fragment)
	if err != nil {
		return nil, s.refused(err.Error())
	}
	u.Fragment, u.RawFragment = "", ""
	for _, p := range []struct{ digest, from string }{
		{fragment, "the URL"}, {strings.ToLower(a.SHA256), "the contract"}, {known.of(u), DigestDir},
	} {
		if err := s.promise(p.digest, p.from); err != nil {
			return nil, err
		}
	}
	if s.digest == "" && u.Scheme == "http" {
		return nil, s.unknown("plain http needs a digest")
	}
	if u.Scheme == "oci" {
		return s, f.register(h, s, a)
	}
	if s.digest == "" && f.opt.RequireDigests {
		return nil, s.unknown("no digest is known for it, and digests are required")
	}
	s.origin, err = f.originOf(h, s, a.Via)
	return s, err
}

// register completes a source that is a reference to a registry.
func (f *Fetcher) register(h host.FS, s *source, a *desired.Artifact) error {
	ref, err := oci.Parse(s.url.String())
	if err != nil {
		return s.refused(err.Error())
	}
	ways := []way{{resolves: true, pulls: true}}
	if a.Image != "" {
		ways, err = f.waysTo(h, ref, a)
	} else {
		ways[0].client, err = f.registry(a.Via)
	}
	if err != nil {
		return err
	}
	s.stock = &stock{ways: ways, ref: ref}
	s.origin, s.pin = s.stock, hex256(ref.Digest.String())
	if s.digest == "" && s.pin == "" && f.opt.RequireDigests {
		return s.unknown("it names no digest, and digests are required")
	}
	return nil
}

func (f *Fetcher) originOf(h host.FS, s *source, via *desired.Egress) (origin, error) {
	if s.url.Scheme == "file" {
		return disk{h, s.url.Path}, nil
	}
	client, err := f.clients.by(f.opt.Client, via)
	return &web{client: client, url: s.url, verified: s.digest != ""}, err
}

// parseURL accepts the schemes that there is an origin for.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
		return u, nil
	}
	if err == nil && u.Scheme == "file" && u.Host == "" && path.IsAbs(u.Path) && path.Clean(u.Path) == u.Path {
		return u, nil
	}
	if err == nil && u.Scheme == "oci" && u.Host != "" && u.User == nil && u.RawQuery == "" {
		return u, nil
	}
	return nil, &RefusedError{URL: desired.BareURL(raw), Reason: "not an https, http, oci or file URL"}
}

func (s *source) refused(reason string) error { return &RefusedError{URL: s.shown(), Reason: reason} }

// unknown refuses a source for want of a digest.
func (s *source) unknown(reason string) error {
	return &RefusedError{URL: s.shown(), Reason: reason, NoDigest: true}
}

// promise takes a digest that somebody gives for the content.
func (s *source) promise(digest, from string) error {
	if digest != "" && s.digest != "" && digest != s.digest {
		return s.refused(fmt.Sprintf("%s and %s give different digests", s.from, from))
	}
	if s.digest == "" && digest != "" {
		s.digest, s.from = digest, from
	}
	return nil
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
