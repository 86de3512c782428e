package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/oci"
)

// Local are the images in a file or directory of this machine: an OCI image
// layout, or an archive of docker save.
type Local struct {
	files  fs.FS
	images []localImage
}

type localImage struct {
	// names are the complete references that the file gives it; may be empty.
	names []string
	root  ocispec.Descriptor
	// made are the parts that are not in the file as such, by digest; where are
	// the names of files that are, where they are not those of a layout.
	made  map[string][]byte
	where map[string]string
}

// LocalError is a file that holds no images that can be read.
type LocalError struct{ Reason string }

// Error says why.
func (e *LocalError) Error() string { return e.Reason }

// OpenLocal reads what images a tree of files has: os.DirFS of a directory, or
// Archive of a tar.
func OpenLocal(files fs.FS) (*Local, error) {
	l := &Local{files: files}
	_, err := fs.Stat(files, layoutName)
	switch {
	case err == nil:
		return l, l.readLayout()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if _, err := fs.Stat(files, dockerName); err == nil {
		return l, l.readDocker()
	}
	return nil, &LocalError{"it holds neither an OCI image layout (oci-layout) nor an archive of docker save (manifest.json)"}
}

func (l *Local) readLayout() error {
	raw, err := l.small(indexName)
	if err != nil {
		return err
	}
	doc, err := oci.ParseManifest(raw, ocispec.MediaTypeImageIndex)
	if err != nil {
		return &LocalError{fmt.Sprintf("%s: %v", indexName, err)}
	}
	for _, d := range doc.Manifests {
		if !oci.IsIndex(d.MediaType) && !oci.IsManifest(d.MediaType) {
			continue
		}
		i := localImage{root: ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}}
		for _, key := range []string{containerdName, ocispec.AnnotationRefName} {
			// A bare tag names nothing; only what is complete counts.
			if name, err := oci.ParseImage(d.Annotations[key]); err == nil && strings.Contains(d.Annotations[key], "/") && !slices.Contains(i.names, name.Complete()) {
				i.names = append(i.names, name.Complete())
			}
		}
		l.images = append(l.images, i)
	}
	if len(l.images) == 0 {
		return &LocalError{"it is an OCI image layout without images"}
	}
	return nil
}

// small reads a file that has no reason to be large.
func (l *Local) small(name string) ([]byte, error) {
	f, err := l.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, oci.MaxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(raw) > oci.MaxManifest {
		return nil, &LocalError{name + " is larger than 4 MiB"}
	}
	return raw, nil
}

func (l *Local) decode(name string, v any) error {
	raw, err := l.small(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return &LocalError{fmt.Sprintf("%s: %v", name, err)}
	}
	return nil
}

// Names are the references that the file gives its images.
func (l *Local) Names() []string {
	var all []string
	for _, i := range l.images {
		all = append(all, i.names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Image is the image of a reference. Where the file holds a single image, any
// reference is right: the file need not know what the image is called here.
func (l *Local) Image(reference string) (ImageSource, error) {
	ref, err := oci.ParseImage(reference)
	if err != nil {
		return nil, err
	}
	complete := ref.Complete()
	for _, i := range l.images {
		if slices.Contains(i.names, complete) || ref.Digest != "" && i.root.Digest == ref.Digest {
			return &localSource{l.files, i}, nil
		}
	}
	if len(l.images) == 1 && ref.Digest == "" {
		return &localSource{l.files, l.images[0]}, nil
	}
	return nil, &LocalError{fmt.Sprintf("%s is not among its %d images: %s", complete, len(l.images), or(strings.Join(l.Names(), ", "), "none has a name"))}
}

// localSource is one image of a file.
type localSource struct {
	files fs.FS
	image localImage
}

// Root implements ImageSource.
func (s *localSource) Root(context.Context) (ocispec.Descriptor, error) { return s.image.root, nil }

// Local implements ImageSource.
func (*localSource) Local() bool { return true }

// Open implements ImageSource.
func (s *localSource) Open(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	digest := d.Digest.String()
	if raw, ok := s.image.made[digest]; ok {
		return io.NopCloser(bytes.NewReader(raw)), nil
	}
	name, ok := s.image.where[digest]
	if !ok {
		name = memberName(digest)
	}
	return s.files.Open(name)
}
