package oci

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/internal/desired"
)

// Scheme begins the references that say where something is got.
const Scheme = "oci://"

// Reference names a manifest or an index in a registry.
type Reference struct {
	// Registry is host[:port], Repository the path below it.
	Registry, Repository string
	// Tag is "latest" where the text gave neither tag nor digest. Where it gave
	// both, the digest is what is asked for.
	Tag string
	// Digest pins the manifest, "sha256:<64 hex digits>"; "" if nothing does.
	Digest digest.Digest
}

// String is the reference as Parse takes it.
func (r Reference) String() string { return Scheme + r.Complete() }

// Complete is the reference as ParseImage takes it, nothing left out.
func (r Reference) Complete() string {
	text := r.Name()
	if r.Tag != "" {
		text += ":" + r.Tag
	}
	if r.Digest != "" {
		text += "@" + r.Digest.String()
	}
	return text
}

// Name is the reference without tag and digest.
func (r Reference) Name() string { return r.Registry + "/" + r.Repository }

// Pulled is how containerd names what it pulled by the reference: a tag does not
// count beside a digest.
func (r Reference) Pulled() string {
	if r.Digest != "" {
		r.Tag = ""
	}
	return r.Complete()
}

// ReferenceError is a text that names nothing in a registry.
type ReferenceError struct {
	// Text is without user and query: they may be secrets.
	Text, Reason string
}

// Error says what is wrong with the text.
func (e *ReferenceError) Error() string { return fmt.Sprintf("%q: %s", e.Text, e.Reason) }

// Parse reads oci://registry[:port]/repository[:tag][@digest]. The registry is in
// lower case then. Its error is a *ReferenceError.
func Parse(text string) (Reference, error) {
	r, reason := parseURL(text)
	if reason != "" {
		return Reference{}, &ReferenceError{desired.BareURL(text), reason}
	}
	return r, nil
}

func parseURL(text string) (r Reference, reason string) {
	rest, ok := strings.CutPrefix(text, Scheme)
	if !ok {
		return r, "it does not begin with " + Scheme
	}
	if strings.ContainsAny(rest, "?#") {
		return r, "it has a query or a fragment"
	}
	host, path, ok := strings.Cut(rest, "/")
	if strings.Contains(host, "@") {
		return r, "credentials do not belong in it"
	}
	if !ok || path == "" {
		return r, "no repository after the registry"
	}
	r.Registry = strings.ToLower(host)
	if reason := checkRegistry(r.Registry); reason != "" {
		return r, reason
	}
	return r, r.parsePath(path)
}

// parsePath takes repository[:tag][@digest] and says what is wrong with it.
func (r *Reference) parsePath(path string) string {
	path, sum, pinned := strings.Cut(path, "@")
	if pinned {
		r.Digest = digest.Digest(sum)
		if !isSHA256(r.Digest) {
			return "what follows @ is no digest (sha256:<64 hex digits>)"
		}
	}
	repository, tag, tagged := strings.Cut(path, ":")
	named, err := reference.WithName(r.Registry + "/" + repository)
	if err != nil {
		return strconv.Quote(repository) + " is no repository (parts of lower-case letters and digits, joined by . _ - and /)"
	}
	r.Repository = repository
	if !tagged && !pinned {
		tag = "latest"
	}
	if _, err := reference.WithTag(named, tag); err != nil && (tagged || !pinned) {
		return strconv.Quote(tag) + " is no tag (letters, digits, _ . - and at most 128 of them)"
	}
	r.Tag = tag
	return ""
}

// checkRegistry says what is wrong with host[:port].
func checkRegistry(text string) string {
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, port = text[:i], text[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "what follows its registry's name is no port"
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		if a, err := netip.ParseAddr(inner); closed && err == nil && a.Is6() && a.Zone() == "" {
			return ""
		}
		return strconv.Quote(host) + " is no IPv6 address"
	}
	if named, err := reference.WithName(host + "/x"); err != nil || len(host) > 253 || reference.Domain(named) != host {
		return strconv.Quote(host) + " is no host name"
	}
	return ""
}

// ParseImage reads the name of an image as a pod has it. Docker's short forms are
// completed: "pause" is docker.io/library/pause:latest. Its error is a
// *ReferenceError.
func ParseImage(text string) (Reference, error) {
	r, err := parseImage(text)
	if err != nil {
		return Reference{}, &ReferenceError{desired.BareURL(text), fmt.Sprintf("it is no reference of an image (registry/repository:tag or @sha256:…): %v", err)}
	}
	return r, nil
}

func parseImage(text string) (Reference, error) {
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return Reference{}, err
	}
	named = reference.TagNameOnly(named)
	r := Reference{Registry: reference.Domain(named), Repository: reference.Path(named)}
	if t, ok := named.(reference.Tagged); ok {
		r.Tag = t.Tag()
	}
	if d, ok := named.(reference.Digested); ok {
		r.Digest = d.Digest()
	}
	if r.Digest != "" && !isSHA256(r.Digest) {
		return r, fmt.Errorf("%s is no sha256", r.Digest)
	}
	if reason := checkRegistry(strings.ToLower(r.Registry)); reason != "" {
		return r, errors.New(reason)
	}
	return r, nil
}

// isSHA256 accepts what registries and containerd use, and nothing else.
func isSHA256(d digest.Digest) bool {
	return d.Validate() == nil && d.Algorithm() == digest.SHA256
}
