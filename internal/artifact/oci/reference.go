package oci

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// Scheme begins every reference.
const Scheme = "oci://"

// Reference names a manifest in a registry.
type Reference struct {
	// Registry is host[:port] in lower case, Repository the path below it.
	Registry, Repository string
	// Tag is "latest" where the text gave neither tag nor digest. Where it gave
	// both, the digest is what is asked for.
	Tag string
	// Digest pins the manifest, "sha256:<64 hex digits>"; "" if nothing does.
	Digest digest.Digest
}

// String is the reference as Parse takes it.
func (r Reference) String() string {
	text := Scheme + r.Registry + "/" + r.Repository
	if r.Tag != "" {
		text += ":" + r.Tag
	}
	if r.Digest != "" {
		text += "@" + r.Digest.String()
	}
	return text
}

// name is what the registry is asked for.
func (r Reference) name() string {
	if r.Digest != "" {
		return r.Digest.String()
	}
	return r.Tag
}

// base is the URL of the repository.
func (r Reference) base() string {
	return "https://" + r.oras().Host() + "/v2/" + r.Repository
}

func (r Reference) oras() registry.Reference {
	return registry.Reference{Registry: r.Registry, Repository: r.Repository, Reference: r.name()}
}

// Parse reads oci://registry[:port]/repository[:tag][@digest]. Its error is a
// *ReferenceError.
func Parse(text string) (Reference, error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	if !ok {
		return Reference{}, &ReferenceError{desired.BareURL(text), "it does not begin with " + Scheme}
	}
	if strings.ContainsAny(rest, "?#") {
		return Reference{}, &ReferenceError{desired.BareURL(text), "it has a query or a fragment"}
	}
	host, path, ok := strings.Cut(rest, "/")
	if strings.Contains(host, "@") {
		return Reference{}, &ReferenceError{desired.BareURL(text), "credentials do not belong in it"}
	}
	if !ok || path == "" {
		return Reference{}, &ReferenceError{desired.BareURL(text), "no repository after the registry"}
	}
	r := Reference{Registry: strings.ToLower(host)}
	if reason := checkRegistry(r.Registry); reason != "" {
		return Reference{}, &ReferenceError{desired.BareURL(text), reason}
	}
	if reason := r.parsePath(path); reason != "" {
		return Reference{}, &ReferenceError{desired.BareURL(text), reason}
	}
	return r, nil
}

// parsePath takes repository[:tag][@digest] and says what is wrong with it.
func (r *Reference) parsePath(path string) string {
	name, sum, pinned := strings.Cut(path, "@")
	if pinned {
		d, err := digest.Parse(sum)
		if err != nil {
			return "what follows @ is no digest (sha256:<64 hex digits>)"
		}
		r.Digest = d
	}
	repository, tag, tagged := strings.Cut(name, ":")
	r.Repository = repository
	if tagged {
		if err := (registry.Reference{Reference: tag}).ValidateReferenceAsTag(); err != nil {
			return strconv.Quote(tag) + " is no tag (letters, digits, _ . - and at most 128 of them)"
		}
		r.Tag = tag
	} else if !pinned {
		r.Tag = "latest"
	}
	if len(repository) > 255 || r.oras().ValidateRepository() != nil {
		return strconv.Quote(repository) + " is no repository (parts of lower-case letters and digits, joined by . _ - and /)"
	}
	return ""
}

var hostName = lazyregexp.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

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
	if len(host) > 253 || !hostName().MatchString(host) {
		return strconv.Quote(host) + " is no host name"
	}
	return ""
}
