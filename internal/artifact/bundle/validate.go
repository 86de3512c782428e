package bundle

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
	"github.com/berth-dev/berth/internal/oci"
)

var (
	platformForm = lazyregexp.New(`^[a-z0-9]{1,32}/[a-z0-9]{1,32}$`)
	nameForm     = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._+~-]{0,127}$`)
	hexForm      = lazyregexp.New(`^[0-9a-f]{64}$`)
)

// validate says what is wrong with a manifest in itself.
func (m *Manifest) validate() error {
	switch {
	case m.Version != FormatVersion:
		return fmt.Errorf("version %d, want %d", m.Version, FormatVersion)
	case !platformForm().MatchString(m.Platform):
		return fmt.Errorf("platform %q is not of the form os/arch", m.Platform)
	case len(m.Blobs) > maxBlobs:
		return fmt.Errorf("it lists %d blobs, more than %d", len(m.Blobs), maxBlobs)
	case m.Artifacts == nil || m.Images == nil || m.Blobs == nil:
		return errors.New("a list is missing")
	}
	sizes, err := m.blobSizes()
	if err != nil {
		return err
	}
	return errors.Join(m.validateArtifacts(sizes), m.validateImages(sizes))
}

// blobSizes is the blobs by digest.
func (m *Manifest) blobSizes() (map[string]int64, error) {
	sizes := make(map[string]int64, len(m.Blobs))
	for _, b := range m.Blobs {
		if !isDigest(b.Digest) {
			return nil, fmt.Errorf("blob %q is not named by a sha256", b.Digest)
		}
		if b.Size < 0 || b.Size > maxBlobSize {
			return nil, fmt.Errorf("blob %s has a size of %d bytes", b.Digest, b.Size)
		}
		sizes[b.Digest] = b.Size
	}
	return sizes, ascending("blob", m.Blobs, compareBlobs, func(b Blob) string { return b.Digest })
}

func isDigest(d string) bool {
	text, ok := strings.CutPrefix(d, "sha256:")
	return ok && hexForm().MatchString(text)
}

// ascending says that a list is in order and has nothing twice.
func ascending[T any](what string, list []T, compare func(a, b T) int, name func(T) string) error {
	for i := 1; i < len(list); i++ {
		switch c := compare(list[i-1], list[i]); {
		case c == 0:
			return fmt.Errorf("%s %s stands twice in it", what, name(list[i]))
		case c > 0:
			return fmt.Errorf("%s %s is out of order", what, name(list[i]))
		}
	}
	return nil
}

func (m *Manifest) validateArtifacts(sizes map[string]int64) error {
	owner := map[string]string{}
	for _, a := range m.Artifacts {
		if err := a.validate(sizes); err != nil {
			return fmt.Errorf("artifact %q: %w", a.Name, err)
		}
		for _, u := range a.URLs {
			if other, taken := owner[u]; taken {
				return fmt.Errorf("%s stands for two artifacts, %s and %s", u, other, a.Name)
			}
			owner[u] = a.Name
		}
	}
	return ascending("artifact", m.Artifacts, compareArtifacts, func(a Artifact) string { return a.Name })
}

func (a *Artifact) validate(sizes map[string]int64) error {
	if err := a.validateName(); err != nil {
		return err
	}
	size, ok := sizes["sha256:"+a.SHA256]
	switch {
	case !ok:
		return fmt.Errorf("its sha256 %q is none of the blobs", a.SHA256)
	case size != a.Size:
		return fmt.Errorf("it has %d bytes and its blob %d", a.Size, size)
	case a.Path != memberName(a.SHA256):
		return fmt.Errorf("its path %q is not that of its blob", a.Path)
	case a.URLs == nil || !slices.IsSorted(a.URLs):
		return errors.New("its URLs are not in order")
	}
	for _, u := range a.URLs {
		if bare, err := bareURL(u); err != nil || bare != u {
			return fmt.Errorf("URL %q is not one that an artifact can stand for", desired.BareURL(u))
		}
	}
	return nil
}

func (a *Artifact) validateName() error {
	if !nameForm().MatchString(a.Name) {
		return errors.New("a name has letters, digits and . _ + ~ -")
	}
	if a.Version != "" && !nameForm().MatchString(a.Version) {
		return fmt.Errorf("version %q: a version has letters, digits and . _ + ~ -", a.Version)
	}
	return nil
}

// bareURL is a URL by which content is found: without user, query and fragment,
// which may be secrets.
func bareURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || !slices.Contains([]string{"https", "http", "oci"}, u.Scheme) {
		return "", fmt.Errorf("%q is not an https, http or oci URL", desired.BareURL(raw))
	}
	v := url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: u.Path, RawPath: u.RawPath}
	return v.String(), nil
}

func (m *Manifest) validateImages(sizes map[string]int64) error {
	for _, i := range m.Images {
		if err := i.validate(sizes); err != nil {
			return fmt.Errorf("image %q: %w", i.Reference, err)
		}
	}
	return ascending("image", m.Images, compareImages, func(i Image) string { return i.Reference })
}

func (i *Image) validate(sizes map[string]int64) error {
	complete, err := oci.ParseImage(i.Reference)
	if err != nil {
		return err
	}
	size, ok := sizes[i.Digest]
	switch {
	case complete.Complete() != i.Reference:
		return fmt.Errorf("the complete reference is %s", complete.Complete())
	case !ok:
		return fmt.Errorf("its digest %q is none of the blobs", i.Digest)
	case size != i.Size:
		return fmt.Errorf("it has %d bytes and its blob %d", i.Size, size)
	case !oci.IsIndex(i.MediaType) && !oci.IsManifest(i.MediaType):
		return fmt.Errorf("%q is no media type of an image", i.MediaType)
	case complete.Digest != "" && complete.Digest.String() != i.Digest:
		return fmt.Errorf("its digest is %s", i.Digest)
	}
	return nil
}
