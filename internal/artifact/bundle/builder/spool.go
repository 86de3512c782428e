package builder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// clear removes what a run that was killed has left.
func (b *builder) clear() {
	names, err := b.Host.ReadDir(path.Dir(b.out))
	if err != nil {
		return // whatever is wrong with it, writing says it
	}
	left := regexp.MustCompile(`^\.berth\.` + regexp.QuoteMeta(path.Base(b.out)) + `\.[0-9]+\.new$`)
	for _, n := range names {
		if left.MatchString(n) {
			_ = b.Host.Remove(path.Join(path.Dir(b.out), n))
		}
	}
}

func (b *builder) attributes(mode fs.FileMode) host.Attributes {
	return host.Attributes{Mode: mode, UID: b.UID, GID: b.GID}
}

// reserve makes a name for content that is kept; its file is host.TempName of it.
func (b *builder) reserve() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	p := fmt.Sprintf("%s.%d", b.out, b.n)
	b.live[p] = true
	return p
}

func (b *builder) drop(p string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.live[p] {
		return nil
	}
	delete(b.live, p)
	err := b.Host.Remove(host.TempName(p))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// close leaves nothing behind.
func (b *builder) close() {
	for p := range b.live {
		_ = b.drop(p) // the next run tries again
	}
	for _, f := range b.opened {
		_ = f.Close()
	}
}

// Keep implements bundle.Spool.
func (b *builder) Keep(write func(io.Writer) error) (bundle.Kept, error) {
	p := b.reserve()
	err := host.PrepareFunc(b.Host, p, b.attributes(0o600), func(f host.File) error { return write(f) })
	if err != nil {
		return nil, errors.Join(err, b.drop(p))
	}
	return &keptFile{b, p}, nil
}

type keptFile struct {
	b *builder
	p string
}

// Open implements bundle.Kept.
func (k *keptFile) Open() (io.ReadCloser, error) { return k.b.Host.Open(host.TempName(k.p)) }

// Drop implements bundle.Kept.
func (k *keptFile) Drop() error { return k.b.drop(k.p) }

// download is the content of an artifact, fetched when it is first opened.
func (b *builder) download(a desired.Artifact) bundle.Content {
	p := b.reserve()
	a.Files = []desired.ArtifactFile{{Path: p, Mode: 0o600}}
	a.Via = nil // the node's way out is not this machine's
	there := false
	return bundle.Content{
		Local: true,
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			if !there {
				if err := b.fetch(ctx, &a); err != nil {
					return nil, err
				}
				there = true
			}
			return b.Host.Open(host.TempName(p))
		},
		Free: func() error { return b.drop(p) },
	}
}

func (b *builder) fetch(ctx context.Context, a *desired.Artifact) error {
	s := converge.Span{ID: a.ID(), Verb: converge.VerbFetch, Phase: "stage", Start: time.Now()}
	b.Observer(s)
	staged, err := b.fetcher.Stage(ctx, ownFiles{b.Host}, a)
	s.End, s.Bytes = time.Now(), staged.Bytes
	if err != nil {
		s.Error = converge.GivenUp // the error itself is told once, at the end
	}
	b.Observer(s)
	if u, ok := errors.AsType[*artifact.UnpackError](err); ok && len(u.Missing) > 0 {
		return &bundle.SpecError{Reason: u.URL + " is an image, of which files are wanted; a bundle takes artifacts that are one file"}
	}
	if err == nil && staged.Unverified {
		b.Say("warning: " + a.Name + " came without a digest: the bundle has what " + staged.URL + " gave")
	}
	return failedFetch(err)
}

// failedFetch gives a download that failed a hint.
func failedFetch(err error) error {
	d, ok := errors.AsType[*artifact.DownloadError](err)
	if !ok {
		return err
	}
	return &exitcode.Error{Err: err, Remedy: cmp.Or(d.Hint(), "check that the URL is right and answers from here; proxies are those of the environment (HTTPS_PROXY)")}
}

// ownFiles is a host for somebody who is not root and makes files of his own. The
// bundles of this machine are no source for another one.
type ownFiles struct{ host.Host }

// Create implements host.FS.
func (o ownFiles) Create(p string) (host.File, error) {
	f, err := o.Host.Create(p)
	if err != nil {
		return nil, err
	}
	return ownFile{f}, nil
}

// ReadDir implements host.FS.
func (o ownFiles) ReadDir(p string) ([]string, error) {
	if strings.HasPrefix(p, artifact.BundleDir) {
		return nil, &fs.PathError{Op: "readdir", Path: p, Err: fs.ErrNotExist}
	}
	return o.Host.ReadDir(p)
}

type ownFile struct{ host.File }

// Chown implements host.File: the file stays whose it is.
func (ownFile) Chown(int, int) error { return nil }
