package artifact

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/oci"
)

// registryPass reads what a reference names: the single file of an artifact, or
// files out of an image by path.
func (t *tries) registryPass(ctx context.Context, s *source) (converge.Staged, error) {
	content, err := t.resolve(ctx, s)
	if err != nil {
		return converge.Staged{}, err
	}
	staged, err := t.fromContent(ctx, s, content)
	if err != nil {
		return converge.Staged{}, err
	}
	staged.URL, staged.Unverified = s.shown(), s.pin == ""
	if s.pin != "" {
		staged.SHA256 = s.pin
	}
	return staged, nil
}

func (t *tries) resolve(ctx context.Context, s *source) (*oci.Content, error) {
	t.attempts++
	wd := watch(ctx, t)
	defer wd.stop()
	wd.begin()
	content, err := s.stock.resolve(wd.ctx)
	wd.end(0)
	if err != nil {
		err = wd.clean(ociError(s, err))
		t.note(s, err)
	}
	return content, err
}

func (t *tries) fromContent(ctx context.Context, s *source, content *oci.Content) (converge.Staged, error) {
	if content.IsImage() {
		return t.imagePass(ctx, s, content)
	}
	layer, err := content.File()
	if err == nil && layer.Digest.Algorithm() != "sha256" {
		err = &UnpackError{URL: s.shown(), Err: fmt.Errorf("its file has the digest %s, want a sha256", layer.Digest)}
	}
	if err != nil {
		err = ociError(s, err)
		t.note(s, err)
		return converge.Staged{}, err
	}
	one := s.layer(layer)
	defer func() { s.dead, s.until = one.dead, one.until }()
	return t.pass(ctx, &group{sources: []*source{one}, digest: one.digest}, []*source{one})
}

// layer is a source for one layer of what s names.
func (s *source) layer(l v1.Descriptor) *source {
	return &source{url: s.url, origin: &blob{s.stock.ways, s.stock.ref, l}, digest: hex256(l.Digest.String()), from: "the manifest"}
}

// imagePass takes the artifact's files out of an image.
func (t *tries) imagePass(ctx context.Context, s *source, content *oci.Content) (converge.Staged, error) {
	digest := hex256(content.Manifest().Digest.String())
	if staged, ok := t.fetcher.kept(ctx, t.h, t.a, func() []string { return []string{digest} }); ok && s.pin == "" {
		return staged, nil // a tag that means the same as another did
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errStopped)
	x := &imageFiles{t: t, ctx: ctx, s: s, content: content, files: newStaging(t.h)}
	image := &oci.Image{Layers: content.Layers, Open: x.open, MaxBytes: t.opt.MaxUnpacked, Window: t.fetcher.takeWindow}
	err := ociError(s, image.Extract(ctx, x.paths(), x.put))
	err = errors.Join(err, x.files.wait())
	if err == nil {
		err = t.fetcher.checkPrograms(t.h, t.a, s.shown())
	}
	if err != nil {
		if left := x.files.remove(); left != nil {
			return converge.Staged{}, errors.Join(err, left)
		}
		if !local(err) {
			t.note(s, err)
		}
		return converge.Staged{}, err
	}
	return converge.Staged{SHA256: digest, Bytes: x.bytes, Resumed: x.resumed}, nil
}

// imageFiles takes files of an artifact out of an image's layers.
type imageFiles struct {
	t       *tries
	ctx     context.Context
	s       *source
	content *oci.Content
	files   *staging
	bytes   int64
	resumed int
}

// inImage is the path of a file inside an image.
func inImage(f desired.ArtifactFile) string {
	if f.Member == "" {
		return f.Path
	}
	return path.Join("/", f.Member)
}

func (x *imageFiles) paths() []string {
	var all []string
	for _, f := range x.t.a.Files {
		all = append(all, inImage(f))
	}
	return all
}

// open reads a layer as any other blob is read: continued where it breaks off.
func (x *imageFiles) open(_ context.Context, l v1.Descriptor) (io.ReadCloser, error) {
	one := x.s.layer(l)
	return &layerFeed{x, &feed{tries: x.t, ctx: x.ctx, from: []*source{one}, verified: true, total: x.total()}}, nil
}

// total is the size of all layers.
func (x *imageFiles) total() (n int64) {
	for _, l := range x.content.Layers {
		n += l.Size
	}
	return n
}

type layerFeed struct {
	x *imageFiles
	*feed
}

// Close implements io.Closer.
func (l *layerFeed) Close() error {
	l.x.bytes += l.pos
	l.x.resumed += l.resumed
	l.close()
	return nil
}

// put stages a file for every path that leads to it.
func (x *imageFiles) put(paths []string, _ *tar.Header, content io.Reader) error {
	var led []desired.ArtifactFile
	for _, f := range x.t.a.Files {
		if leads(paths, inImage(f)) {
			led = append(led, f)
		}
	}
	return x.files.putAll(led, content)
}

func leads(paths []string, to string) bool {
	for _, p := range paths {
		if path.Join("/", p) == to {
			return true
		}
	}
	return false
}

// ociError gives an error of a registry the meaning that it has for an artifact.
func ociError(s *source, err error) error {
	var digest *oci.DigestError
	var platform *oci.PlatformError
	var manifest *oci.ManifestError
	var content *oci.ContentError
	var missing *oci.MissingError
	var size *oci.SizeError
	var status *remote.StatusError
	switch {
	case err == nil || local(err):
		return err
	case errors.As(err, &digest):
		return &DigestError{URL: s.shown(), Want: digest.Want, Got: digest.Got, Source: digest.Source}
	case errors.As(err, &platform):
		return &MismatchError{URL: s.shown(), What: "architecture", Got: strings.Join(platform.Have, ", "), Want: platform.Want}
	case errors.As(err, &missing):
		return &UnpackError{URL: s.shown(), Missing: missing.Paths, Have: missing.Have}
	case errors.As(err, &manifest), errors.As(err, &content), errors.As(err, &size):
		return &UnpackError{URL: s.shown(), Err: err}
	case errors.As(err, &status):
		return &statusError{status: status.Status, wait: status.RetryAfter, err: err}
	}
	return err
}
