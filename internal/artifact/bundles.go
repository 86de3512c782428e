package artifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// BundleDir holds bundles for a site without network: files *.bundle. What one of
// them has is not fetched.
const BundleDir = paths.StateDir + "/bundles"

// packed is a blob in a bundle.
type packed struct {
	h      host.FS
	path   string
	sha256 string
}

func (p *packed) open(_ context.Context, offset int64, _ string) (*flow, error) {
	b, file, err := openBundle(p.h, p.path)
	if err != nil {
		return nil, &hostError{err}
	}
	content, err := b.Blob("sha256:" + p.sha256)
	if err != nil {
		return nil, &hostError{errors.Join(err, file.Close())}
	}
	return &flow{body: section(content, file, offset, content.Size()-offset), start: offset, size: content.Size(), tag: p.sha256}, nil
}

// openBundle reads a bundle's manifest. The signature is not looked at.
func openBundle(h host.FS, p string) (*bundle.Bundle, host.ReadFile, error) {
	info, err := h.Lstat(p)
	if err != nil {
		return nil, nil, err
	}
	file, err := h.Open(p)
	if err != nil {
		return nil, nil, err
	}
	b, err := bundle.Open(file, info.Size)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", p, err), file.Close())
	}
	return b, file, nil
}

// Has implements what converge asks of a Fetcher: a bundle has it. A bundle that can't be
// read counts: Stage then says why.
func (f *Fetcher) Has(h host.FS, a *desired.Artifact) bool {
	found, err := f.bundled(h, a)
	return err != nil || len(found) > 0
}

// bundled are sources for an artifact in the machine's bundles. A bundle that
// can't be read, or that nobody trusted has signed, is an error: it was put there
// to be used.
func (f *Fetcher) bundled(h host.FS, a *desired.Artifact) ([]*source, error) {
	names, err := h.ReadDir(BundleDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read bundles: %w", err)
	}
	var all []*source
	for _, name := range names {
		if path.Ext(name) != ".bundle" {
			continue
		}
		s, err := f.inBundle(h, path.Join(BundleDir, name), a)
		if err != nil {
			return nil, err
		}
		if s != nil {
			all = append(all, s)
		}
	}
	return all, nil
}

// Images are the container images of the machine's bundles, the first of each
// reference. A bundle that can't be read is an error: it was put there to be used.
func Images(h host.FS) ([]bundle.Image, error) {
	names, err := h.ReadDir(BundleDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read bundles: %w", err)
	}
	var all []bundle.Image
	known := map[string]bool{}
	for _, name := range names {
		if path.Ext(name) != ".bundle" {
			continue
		}
		b, file, err := openBundle(h, path.Join(BundleDir, name))
		if err != nil {
			return nil, err
		}
		for _, i := range b.Manifest().Images {
			if !known[i.Reference] {
				known[i.Reference] = true
				all = append(all, i)
			}
		}
		_ = file.Close()
	}
	return all, nil
}

// ImageBundle opens the bundle that holds an image, after its signature was
// looked at. The caller closes the file.
func ImageBundle(h host.FS, digest, reference string) (*bundle.Bundle, host.ReadFile, error) {
	names, err := h.ReadDir(BundleDir)
	if err != nil {
		return nil, nil, fmt.Errorf("read bundles: %w", err)
	}
	keys, err := bundle.TrustedKeys(h)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if path.Ext(name) != ".bundle" {
			continue
		}
		p := path.Join(BundleDir, name)
		b, file, err := openBundle(h, p)
		if err != nil {
			return nil, nil, err
		}
		if found, ok := b.FindImage(reference); !ok || found.Digest != digest {
			_ = file.Close()
			continue
		}
		if err := b.Authenticate(keys); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", p, err), file.Close())
		}
		return b, file, nil
	}
	return nil, nil, fmt.Errorf("no bundle in %s holds the image %s", BundleDir, reference)
}

func (f *Fetcher) inBundle(h host.FS, p string, a *desired.Artifact) (*source, error) {
	b, file, err := openBundle(h, p)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	keys, err := bundle.TrustedKeys(h)
	if err != nil {
		return nil, err
	}
	if err := b.Authenticate(keys); err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	found, named := findIn(b, a, f.opt.Arch)
	if found == nil {
		return nil, nil
	}
	u := &url.URL{Scheme: "file", Path: p + "/" + found.Path}
	return &source{url: u, digest: found.SHA256, from: "the bundle", named: named, origin: &packed{h, p, found.SHA256}}, nil
}

// findIn looks for an artifact by its URLs (then it is named), else by name and
// version. Where the document says neither URL nor version, its name is enough.
func findIn(b *bundle.Bundle, a *desired.Artifact, arch string) (found *bundle.Artifact, named bool) {
	for _, raw := range a.Addresses() {
		want, _, _ := strings.Cut(raw, "#")
		if found, ok := b.Find(want); ok {
			return &found, true
		}
	}
	if found, ok := b.FindVersion(a.Name, a.Version, arch); ok {
		return &found, false
	}
	if len(a.Addresses()) == 0 && a.Version == "" {
		if found, ok := b.FindOnly(a.Name, arch); ok {
			return &found, false
		}
	}
	return nil, false
}

// agreeing are the sources in bundles whose digest is one that was promised, if
// any was: one that stands for the very URL and has other content is refused, one
// of the same name and version is another build.
func agreeing(packed []*source, promised []string) ([]*source, error) {
	var all []*source
	for _, s := range packed {
		switch {
		case len(promised) == 0 || slices.Contains(promised, s.digest):
			all = append(all, s)
		case s.named:
			return nil, &DigestError{URL: s.shown(), Want: promised[0], Got: s.digest, Source: "the document, " + DigestDir + " or the URL"}
		}
	}
	return all, nil
}
