package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/berth-dev/berth/internal/oci"
)

// Bundle is an open bundle. Its methods may be used by several goroutines while
// what it was opened from stays open.
type Bundle struct {
	r         io.ReaderAt
	manifest  *Manifest
	raw       []byte
	signature *signature
	blobs     map[string]extent
	byURL     map[string]int
}

// extent is where a blob's content lies.
type extent struct{ offset, size int64 }

// Open reads the manifest, the signature and the header of each member, and no
// blob. What it returns is a bundle whose members are exactly those of its
// manifest, in their place and size; their content and the signature are still
// to be verified (Authenticate, Verify). Errors: *NotBundleError, *VersionError,
// *DamagedError, or the reader's.
func Open(r io.ReaderAt, size int64) (*Bundle, error) {
	s := &scan{r: r, size: size}
	b := &Bundle{r: r, blobs: map[string]extent{}, byURL: map[string]int{}}
	if err := b.readManifest(s); err != nil {
		return nil, err
	}
	if err := b.readSignature(s); err != nil {
		return nil, err
	}
	if err := b.readIndex(s); err != nil {
		return nil, err
	}
	for _, blob := range b.manifest.Blobs {
		p, err := s.take(memberName(blob.Digest), blob.Size)
		if err != nil {
			return nil, err
		}
		b.blobs[blob.Digest] = p
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	for i, a := range b.manifest.Artifacts {
		for _, u := range a.URLs {
			b.byURL[u] = i
		}
	}
	return b, nil
}

func (b *Bundle) readManifest(s *scan) error {
	size, err := s.first()
	if err != nil {
		return err
	}
	if b.raw, err = s.read(ManifestName, size, maxManifest); err != nil {
		return err
	}
	b.manifest, err = decodeManifest(b.raw)
	return err
}

func (b *Bundle) readSignature(s *scan) error {
	block, err := s.block()
	if err != nil || nameOf(block) != SignatureName {
		return err
	}
	raw, err := s.read(SignatureName, sizeOf(block), maxSignature)
	if err != nil {
		return err
	}
	b.signature, err = decodeSignature(raw)
	return err
}

// readIndex compares the members for readers of OCI layouts with what the
// manifest makes of them.
func (b *Bundle) readIndex(s *scan) error {
	layout, err := layoutFile()
	if err != nil {
		return err
	}
	index, err := b.manifest.indexFile()
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		want []byte
	}{{layoutName, layout}, {indexName, index}} {
		got, err := s.read(m.name, int64(len(m.want)), int64(len(m.want)))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, m.want) {
			return &DamagedError{Member: m.name, Reason: "it does not say what the manifest says"}
		}
	}
	return nil
}

// Manifest is what the bundle holds. It must not be changed.
func (b *Bundle) Manifest() *Manifest { return b.manifest }

// KeyID is the key that the bundle says it is signed by, "" if it is not signed.
func (b *Bundle) KeyID() string {
	if b.signature == nil {
		return ""
	}
	return b.signature.KeyID
}

// Blob is the content of a digest, "sha256:…" or its hex digits alone. The
// reader of the content compares it with the digest. Its error is a *BlobError.
func (b *Bundle) Blob(digest string) (*io.SectionReader, error) {
	if !strings.Contains(digest, ":") {
		digest = "sha256:" + digest
	}
	p, ok := b.blobs[digest]
	if !ok {
		return nil, &BlobError{Digest: digest}
	}
	return io.NewSectionReader(b.r, p.offset, p.size), nil
}

// Find is the artifact that stands for a URL. Its user and query are ignored; a
// fragment "#sha256=…" must be the artifact's digest.
func (b *Bundle) Find(url string) (Artifact, bool) {
	_, fragment, _ := strings.Cut(url, "#")
	bare, err := bareURL(url)
	if err != nil {
		return Artifact{}, false
	}
	i, ok := b.byURL[bare]
	if !ok {
		return Artifact{}, false
	}
	a := b.manifest.Artifacts[i]
	if want, given := strings.CutPrefix(fragment, "sha256="); given && !strings.EqualFold(want, a.SHA256) {
		return Artifact{}, false
	}
	return a, true
}

// FindVersion is the artifact of a name and version for an architecture as Go
// names it. A leading v of the version does not count.
func (b *Bundle) FindVersion(name, version, arch string) (Artifact, bool) {
	if b.manifest.Platform != "linux/"+arch || version == "" {
		return Artifact{}, false
	}
	for _, a := range b.manifest.Artifacts {
		if a.Name == name && a.Version == strings.TrimPrefix(version, "v") {
			return a, true
		}
	}
	return Artifact{}, false
}

// FindOnly is the one artifact of a name, for an architecture as Go names it. Of several
// none is meant.
func (b *Bundle) FindOnly(name, arch string) (found Artifact, ok bool) {
	if b.manifest.Platform != "linux/"+arch {
		return Artifact{}, false
	}
	for _, a := range b.manifest.Artifacts {
		if a.Name != name {
			continue
		}
		if ok {
			return Artifact{}, false
		}
		found, ok = a, true
	}
	return found, ok
}

// FindImage is the image of a reference, short or complete.
func (b *Bundle) FindImage(reference string) (Image, bool) {
	complete, err := oci.ParseImage(reference)
	if err != nil {
		return Image{}, false
	}
	for _, i := range b.manifest.Images {
		if i.Reference == complete.Complete() {
			return i, true
		}
	}
	return Image{}, false
}

// String names the bundle in a log.
func (b *Bundle) String() string {
	return fmt.Sprintf("bundle of %d artifacts and %d images for %s", len(b.manifest.Artifacts), len(b.manifest.Images), b.manifest.Platform)
}

// OpenRegular opens a regular file and says how large it is. Anything else could
// block, or is a mistake.
func OpenRegular(name string) (*os.File, int64, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		what := "no regular file"
		if info.IsDir() {
			what = "a directory"
		}
		return nil, 0, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is " + what)}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}
