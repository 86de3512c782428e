package oci

import (
	"cmp"
	"slices"
	"strings"

	"github.com/containerd/platforms"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Platform is what a machine runs.
type Platform struct {
	// text is "linux/amd64".
	text string
	// order is that of containerd: the machine's own variant, then the older ones
	// and the 32-bit architecture that it runs too.
	order platforms.MatchComparer
}

// Linux is the platform of an architecture as Go names it. Its variant is the one
// that all its machines have.
func Linux(arch string) Platform { return PlatformOf("linux/" + arch) }

// PlatformOf is the platform of a text of the form os/arch.
func PlatformOf(text string) Platform {
	system, arch, _ := strings.Cut(text, "/")
	return Platform{text, platforms.Only(v1.Platform{OS: system, Architecture: arch})}
}

// String is os/arch.
func (p Platform) String() string { return p.text }

// Runs says whether an image for q runs here.
func (p Platform) Runs(q v1.Platform) bool { return p.order.Match(q) }

// choose takes the one entry of an index that containerd would run: the best, of
// equals the first. One that names no platform may be for any, and comes last.
func (p Platform) choose(index Node) (v1.Descriptor, error) {
	var fit []v1.Descriptor
	e := p.misfit(index.Descriptor)
	for _, d := range index.Manifest.Manifests {
		switch {
		case d.MediaType != "" && !isKnown(d.MediaType): // no image
		case d.Platform == nil || p.Runs(*d.Platform):
			fit = append(fit, d)
		default:
			e.add(*d.Platform)
		}
	}
	if len(fit) == 0 {
		return v1.Descriptor{}, e
	}
	return slices.MinFunc(fit, p.compare), nil
}

func (p Platform) compare(a, b v1.Descriptor) int {
	switch {
	case a.Platform == nil || b.Platform == nil:
		return cmp.Compare(bit(a.Platform == nil), bit(b.Platform == nil))
	case p.order.Less(*a.Platform, *b.Platform):
		return -1
	case p.order.Less(*b.Platform, *a.Platform):
		return 1
	}
	return 0
}

func bit(set bool) int {
	if set {
		return 1
	}
	return 0
}

// maxNames is how many names an error shows.
const maxNames = 20

func (p Platform) misfit(d v1.Descriptor) *PlatformError {
	return &PlatformError{What: "manifest " + d.Digest.String(), Want: p.text}
}

// add names a platform that an image is for. Attestations are for none.
func (e *PlatformError) add(q v1.Platform) {
	name := q.OS + "/" + q.Architecture
	if q.Variant != "" {
		name += "/" + q.Variant
	}
	name = Words(name, 60)
	if q.OS != "unknown" && !slices.Contains(e.Have, name) && len(e.Have) < maxNames {
		e.Have = append(e.Have, name)
		slices.Sort(e.Have)
	}
}
