package bundle

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/artifact/program"
)

// fetches is how many contents are fetched at once.
const fetches = 4

// Create writes a bundle: signed, unless signer is nil. The same content makes
// the same bytes. All content is fetched or read before the first byte is
// written, since the manifest stands first; when Create fails, what out has is
// not a bundle. Errors: *SpecError, *ContentError (a digest that was promised),
// *ImageError, those of the sources, of the spool and of out.
func Create(ctx context.Context, spec Spec, spool Spool, signer ed25519.PrivateKey, out io.Writer) (m *Manifest, err error) {
	c := &collection{platform: spec.Platform, spool: spool, blobs: map[string]*stored{}}
	defer func() { err = errors.Join(err, c.drop()) }()
	if m, err = c.collect(ctx, spec); err != nil {
		return nil, ended(ctx, err)
	}
	w := &writer{ctx: ctx, out: plainWriter{out}}
	if err := w.bundle(m, signer, c); err != nil {
		return nil, ended(ctx, err)
	}
	return m, nil
}

// ended says why the context ended where that is the reason of an error.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// collect gets all content and makes the manifest.
func (c *collection) collect(ctx context.Context, spec Spec) (*Manifest, error) {
	if !platformForm().MatchString(spec.Platform) {
		return nil, &SpecError{fmt.Sprintf("platform %q is not of the form os/arch", spec.Platform)}
	}
	artifacts, images := make([]Artifact, len(spec.Artifacts)), make([]Image, len(spec.Images))
	g, all := errgroup.WithContext(ctx)
	g.SetLimit(fetches)
	for i, a := range spec.Artifacts {
		g.Go(func() (err error) {
			artifacts[i], err = c.artifact(all, a)
			return err
		})
	}
	for i, one := range spec.Images {
		g.Go(func() (err error) {
			images[i], err = c.image(all, one)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	m := &Manifest{Version: FormatVersion, Platform: spec.Platform, Artifacts: []Artifact{}, Images: []Image{}, Blobs: c.list()}
	if err := m.merge(artifacts, images); err != nil {
		return nil, err
	}
	m.sort()
	if err := m.validate(); err != nil {
		return nil, &SpecError{err.Error()}
	}
	return m, nil
}

// artifact gets one artifact.
func (c *collection) artifact(ctx context.Context, a ArtifactSpec) (Artifact, error) {
	out := Artifact{Name: a.Name, Version: strings.TrimPrefix(a.Version, "v"), URLs: []string{}}
	if err := out.validateName(); err != nil {
		return out, &SpecError{fmt.Sprintf("artifact %q: %v", a.Name, err)}
	}
	p := promise{what: a.Name}
	if err := p.add(strings.ToLower(a.SHA256), or(a.Source, "the document")); err != nil {
		return out, err
	}
	for _, u := range a.URLs {
		bare, err := bareURL(u)
		if err != nil {
			return out, &SpecError{fmt.Sprintf("artifact %s: %v", a.Name, err)}
		}
		out.URLs = append(out.URLs, bare)
		if _, fragment, ok := strings.Cut(u, "#"); ok {
			if err := p.add(strings.ToLower(strings.TrimPrefix(fragment, "sha256=")), "the URL"); err != nil {
				return out, err
			}
		}
	}
	s, err := c.store(ctx, p, a.Content)
	if err != nil {
		return out, fmt.Errorf("artifact %s: %w", a.Name, err)
	}
	if got, foreign := program.Foreign(s.head, path.Base(c.platform)); foreign {
		return out, &SpecError{fmt.Sprintf("artifact %s is a program for %s, and the bundle is for %s", a.Name, got, c.platform)}
	}
	out.SHA256, out.Size, out.Path = s.sum, s.size, memberName(s.sum)
	return out, nil
}

// promise is what is said of a content's digest.
type promise struct {
	what, sum, from string
	// size is in bytes; 0 with fixed false: unknown.
	size  int64
	fixed bool
}

func (p *promise) add(sum, from string) error {
	switch {
	case sum == "":
		return nil
	case !hexForm().MatchString(sum):
		return &SpecError{fmt.Sprintf("%s: %s gives no sha256: want 64 hex digits", p.what, from)} // a fragment may be a secret
	case p.sum != "" && p.sum != sum:
		return &SpecError{fmt.Sprintf("%s: %s and %s give different digests", p.what, p.from, from)}
	}
	p.sum, p.from = sum, from
	return nil
}

func (p *promise) check(sum string, size int64) error {
	if p.sum != "" && p.sum != sum {
		return &ContentError{What: p.what, Want: p.sum, Got: sum, Source: p.from}
	}
	if p.fixed && p.size != size {
		return fmt.Errorf("%s: it has %d bytes, want %d (from %s)", p.what, size, p.size, p.from)
	}
	return nil
}
