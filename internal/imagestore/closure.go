package imagestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Limits of what is read into memory, in bytes. Registries and containerd refuse
// larger manifests.
const (
	maxManifest = 4 << 20
	maxConfig   = 8 << 20
	maxDepth    = 4 // of indexes inside indexes
)

// gcContent begins the labels by which containerd's garbage collection goes from
// a manifest to what it needs.
const gcContent = "containerd.io/gc.ref.content."

// blob is one item of an image.
type blob struct {
	ocispec.Descriptor
	// labels are what the blob must have in the content store.
	labels map[string]string
}

// closure is what one machine needs of an image.
type closure struct {
	target   ocispec.Descriptor
	manifest ocispec.Descriptor
	config   ocispec.Descriptor
	// leaves are layers and config, parents the manifest and then the indexes that
	// lead to it. A blob stands once.
	leaves, parents []blob
}

// resolve reads an image's manifests and config, each verified before it is
// believed, and lists what the host needs of it.
func resolve(img Image, host ocispec.Platform) (*closure, error) {
	c := &closure{}
	d := ocispec.Descriptor{Digest: digest.Digest(img.Digest), Size: -1}
	for range maxDepth {
		doc, err := readManifest(img, &d)
		if err != nil {
			return nil, err
		}
		if c.target.Digest == "" {
			c.target = d
		}
		b := blob{Descriptor: d, labels: childLabels(doc)}
		c.parents = append([]blob{b}, c.parents...)
		if doc.Config != nil {
			c.manifest = d
			return c, c.addManifest(img, doc, host)
		}
		if d, err = choose(d, doc, host); err != nil {
			return nil, err
		}
	}
	return nil, &ManifestError{Digest: img.Digest, Err: errors.New("indexes are nested too deeply")}
}

// addManifest adds what a manifest lists.
func (c *closure) addManifest(img Image, doc *imageManifest, host ocispec.Platform) error {
	c.config = *doc.Config
	if err := checkConfig(img, c.manifest, doc, host); err != nil {
		return err
	}
	seen := map[digest.Digest]bool{}
	for _, d := range append(doc.Layers, *doc.Config) {
		if err := checkDescriptor(c.manifest, d); err != nil {
			return err
		}
		if !seen[d.Digest] {
			c.leaves = append(c.leaves, blob{Descriptor: d})
		}
		seen[d.Digest] = true
	}
	return nil
}

func checkDescriptor(parent, d ocispec.Descriptor) error {
	err := checkDigest(d.Digest.String())
	if err == nil && d.Size < 0 {
		err = fmt.Errorf("%s has a negative size", d.Digest)
	}
	if err != nil {
		return &ManifestError{Digest: parent.Digest.String(), Err: err}
	}
	return nil
}

// choose takes the manifest of an index that the host runs: the first, as
// containerd does.
func choose(d ocispec.Descriptor, doc *imageManifest, host ocispec.Platform) (ocispec.Descriptor, error) {
	e := &PlatformError{Digest: d.Digest.String(), Want: platformText(host)}
	for _, m := range doc.Manifests {
		if m.Platform == nil || runs(host, *m.Platform) {
			return m, checkDescriptor(d, m)
		}
		if m.Platform.OS != "unknown" { // attestations
			e.Have = append(e.Have, platformText(*m.Platform))
		}
	}
	return ocispec.Descriptor{}, e
}

// checkConfig refuses an image whose config is of another machine, or not of
// these layers: no container could start from it.
func checkConfig(img Image, manifest ocispec.Descriptor, doc *imageManifest, host ocispec.Platform) error {
	if err := checkDescriptor(manifest, *doc.Config); err != nil {
		return err
	}
	raw, err := readVerified(img, doc.Config.Digest, doc.Config.Size, maxConfig)
	if err != nil {
		return err
	}
	var config ocispec.Image
	if err := json.Unmarshal(raw, &config); err != nil {
		return &ManifestError{Digest: doc.Config.Digest.String(), Err: fmt.Errorf("read config: %w", err)}
	}
	if !runs(host, config.Platform) {
		return &PlatformError{Digest: manifest.Digest.String(), Want: platformText(host), Have: []string{platformText(config.Platform)}}
	}
	if n := len(config.RootFS.DiffIDs); n != len(doc.Layers) {
		return &ManifestError{Digest: manifest.Digest.String(), Err: fmt.Errorf("%d layers, but its config knows of %d", len(doc.Layers), n)}
	}
	return nil
}

// readManifest reads a manifest or index and completes its descriptor.
func readManifest(img Image, d *ocispec.Descriptor) (*imageManifest, error) {
	raw, err := readVerified(img, d.Digest, d.Size, maxManifest)
	if err != nil {
		return nil, err
	}
	doc, err := parseManifest(raw)
	if err != nil {
		return nil, &ManifestError{Digest: d.Digest.String(), Err: err}
	}
	*d = ocispec.Descriptor{MediaType: doc.MediaType, Digest: d.Digest, Size: int64(len(raw))}
	return doc, nil
}

// readVerified reads a small blob whole. size is -1 where nobody promised one.
func readVerified(img Image, d digest.Digest, size, limit int64) ([]byte, error) {
	r, n, err := img.Blob(d.String())
	if err != nil {
		return nil, fmt.Errorf("open blob %s: %w", d, err)
	}
	defer r.Close()
	if n > limit || size > limit {
		return nil, &ManifestError{Digest: d.String(), Err: fmt.Errorf("%d bytes are more than the %d of any real one", max(n, size), limit)}
	}
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read blob %s: %w", d, err)
	}
	if got := digest.FromBytes(raw); got != d || size >= 0 && int64(len(raw)) != size {
		return nil, &DigestError{Want: d.String(), Err: fmt.Errorf("its %d bytes have the digest %s", len(raw), got)}
	}
	return raw, nil
}

// childLabels name what a manifest refers to, as containerd itself does after a
// pull.
func childLabels(doc *imageManifest) map[string]string {
	labels := map[string]string{}
	for i, m := range doc.Manifests {
		labels[gcContent+"m."+strconv.Itoa(i)] = m.Digest.String()
	}
	if doc.Config != nil {
		labels[gcContent+"config"] = doc.Config.Digest.String()
	}
	for i, l := range doc.Layers {
		labels[gcContent+"l."+strconv.Itoa(i)] = l.Digest.String()
	}
	return labels
}
