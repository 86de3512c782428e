package bundle

import (
	"context"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/oci"
)

// Spec is what a bundle shall hold.
type Spec struct {
	// Platform is what all of it is for: "linux/amd64".
	Platform  string
	Artifacts []ArtifactSpec
	Images    []ImageSpec
}

// ArtifactSpec is a file and what it stands for.
type ArtifactSpec struct {
	Name string
	// Version is without v; may be empty.
	Version string
	// URLs are those that the file stands for; none: it is found by name and
	// version only. A fragment "#sha256=…" promises its digest.
	URLs []string
	// SHA256 is another promise of its digest, in hex; Source says whose.
	SHA256, Source string
	Content        Content
}

// Content is where bytes come from.
type Content struct {
	// Local: opening it again gives the same bytes and costs nothing. Else it is
	// opened once, and spooled.
	Local bool
	Open  func(ctx context.Context) (io.ReadCloser, error)
	// Free, if not nil, is called once: the content is not needed any more.
	Free func() error
}

// ImageSpec is an image and where it comes from.
type ImageSpec struct {
	Reference string
	Source    ImageSource
}

// ImageSource gives the parts of an image. Its methods may be called from several
// goroutines.
type ImageSource interface {
	// Root describes what the reference leads to: a manifest or an index.
	Root(ctx context.Context) (ocispec.Descriptor, error)
	// Source opens manifests, configurations and layers.
	oci.Source
	// Local is as in Content.
	Local() bool
}

// Spool keeps what can be read only once. Its methods may be called from several
// goroutines.
type Spool interface {
	// Keep calls write with where content goes. Its error is that of write, or of
	// the machine.
	Keep(write func(io.Writer) error) (Kept, error)
}

// Kept is spooled content.
type Kept interface {
	Open() (io.ReadCloser, error)
	// Drop frees its room; it is called once.
	Drop() error
}
