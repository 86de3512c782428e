// Package builder makes bundles: of what a document wants, of single artifacts and
// of container images.
package builder

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// Options are what a Builder needs. All are required but Client and Identity.
type Options struct {
	Host host.Host
	// UID and GID are whose the file becomes.
	UID, GID int
	// RequireDigests: what has no digest is not fetched.
	RequireDigests bool
	// Observer is told of each download, Say of what somebody should know.
	Observer converge.Observer
	Say      func(string)
	// Client fetches, where it is not nil.
	Client *http.Client
	// Identity says who the machine is to registries that want to know.
	Identity artifact.Identity
}

// Request is what a bundle shall hold.
type Request struct {
	// Platform is OS/ARCH.
	Platform string
	// Document wants artifacts and images; nil wants none.
	Document contract.Contract
	// Artifacts are [NAME[@VERSION]=]SOURCE[#sha256=HEX], Images are REFERENCE,
	// REFERENCE=PATH or PATH.
	Artifacts, Images []string
}

// Built is what was made. KeyID is "" where it is not signed.
type Built struct {
	Manifest *bundle.Manifest
	KeyID    string
	// SHA256 is that of the whole file.
	SHA256 [sha256.Size]byte
}

// Build writes a bundle into a file, whole or not at all. It needs room for what
// is fetched beside the file, under names that the next run finds and removes. A
// nil key signs nothing.
func Build(ctx context.Context, o Options, r Request, file string, key ed25519.PrivateKey) (Built, error) {
	out, err := target(o.Host, file)
	if err != nil {
		return Built{}, err
	}
	b := newBuilder(o, out, r.Platform)
	defer b.close()
	spec, err := b.spec(r)
	if err != nil {
		return Built{}, err
	}
	built, err := b.build(ctx, spec, key)
	if err != nil {
		return Built{}, fmt.Errorf("create %s: %w", file, err)
	}
	return built, nil
}

// target is the file to write, through the links of this machine, whoever they
// belong to: the user named it.
func target(h host.FS, name string) (string, error) {
	p, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
		p = filepath.Join(dir, filepath.Base(p))
	}
	info, err := h.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err != nil:
		return "", err
	case !info.IsRegular():
		return "", &fs.PathError{Op: "write", Path: p, Err: errors.New("it is there and no regular file; name a file")}
	}
	return p, nil
}

// builder makes one bundle.
type builder struct {
	Options
	out     string
	fetcher *artifact.Fetcher
	// opened are files of images, which are read until the end.
	opened []io.Closer

	// mu guards the names that are in use.
	mu   sync.Mutex
	n    int
	live map[string]bool
}

// patience is for how long a download may make no progress: somebody waits.
const patience = time.Minute

// maxArtifact bounds a download, in bytes.
const maxArtifact = 16 << 30

func newBuilder(o Options, out, platform string) *builder {
	b := &builder{Options: o, out: out, live: map[string]bool{}}
	b.fetcher = artifact.New(artifact.Options{
		CacheBytes: -1, RequireDigests: o.RequireDigests, MaxBytes: maxArtifact, Budget: patience, Arch: path.Base(platform), Client: o.Client, Identity: o.Identity,
	})
	b.clear()
	return b
}

func (b *builder) build(ctx context.Context, spec bundle.Spec, key ed25519.PrivateKey) (built Built, err error) {
	sum := sha256.New()
	built.Manifest, err = b.write(ctx, func(to io.Writer) (*bundle.Manifest, error) {
		return bundle.Create(ctx, spec, b, key, io.MultiWriter(to, sum))
	})
	if err != nil {
		return Built{}, err
	}
	if key != nil {
		public, _ := key.Public().(ed25519.PublicKey)
		built.KeyID = bundle.KeyID(public)
	}
	sum.Sum(built.SHA256[:0])
	return built, nil
}

// write makes a file whole or not at all.
func (b *builder) write(ctx context.Context, create func(io.Writer) (*bundle.Manifest, error)) (m *bundle.Manifest, err error) {
	err = host.PrepareFunc(b.Host, b.out, b.attributes(0o644), func(to host.File) error {
		m, err = create(to)
		return err
	})
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), b.Host.Remove(host.TempName(b.out)))
	}
	if err := host.Commit(b.Host, b.out); err != nil {
		return nil, errors.Join(err, b.Host.Remove(host.TempName(b.out)))
	}
	return m, b.Host.SyncDir(path.Dir(b.out))
}
