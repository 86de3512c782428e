package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// workbench is where a bundle is made: beside its file, under names that the
// next run finds and clears away.
type workbench struct {
	env      *env
	h        host.Host
	out      string
	fetcher  *artifact.Fetcher
	progress *progress
	// opened are files of images, which are read until the end.
	opened []io.Closer

	mu   sync.Mutex
	n    int
	live map[string]bool
}

// newWorkbench makes bundles for a platform, as OS/ARCH.
func newWorkbench(e *env, h host.Host, out, platform string) *workbench {
	w := &workbench{env: e, h: h, out: out, progress: newProgress(e), live: map[string]bool{}, fetcher: artifact.New(fetching(e, platform))}
	w.clear()
	return w
}

func fetching(e *env, platform string) artifact.Options {
	return artifact.Options{CacheBytes: -1, RequireDigests: e.requireDigests, MaxBytes: maxArtifact, Budget: patience, Arch: path.Base(platform)}
}

// patience is for how long a download may make no progress: somebody waits.
const patience = time.Minute

// maxArtifact bounds a download, in bytes.
const maxArtifact = 16 << 30

// clear removes what a run that was killed has left.
func (w *workbench) clear() {
	names, err := w.h.ReadDir(path.Dir(w.out))
	if err != nil {
		return // whatever is wrong with it, writing says it
	}
	left := regexp.MustCompile(`^\.berth\.` + regexp.QuoteMeta(path.Base(w.out)) + `\.[0-9]+\.new$`)
	for _, n := range names {
		if left.MatchString(n) {
			_ = w.h.Remove(path.Join(path.Dir(w.out), n))
		}
	}
}

func (w *workbench) attributes(mode fs.FileMode) host.Attributes {
	return host.Attributes{Mode: mode, UID: w.env.uid, GID: os.Getegid()}
}

// place is a name for content that is kept; its file is host.TempName of it.
func (w *workbench) place() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	p := fmt.Sprintf("%s.%d", w.out, w.n)
	w.live[p] = true
	return p
}

func (w *workbench) drop(p string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.live[p] {
		return nil
	}
	delete(w.live, p)
	err := w.h.Remove(host.TempName(p))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// close leaves nothing behind.
func (w *workbench) close() {
	for p := range w.live {
		_ = w.drop(p) // the next run tries again
	}
	for _, f := range w.opened {
		_ = f.Close()
	}
}

// Keep implements bundle.Spool.
func (w *workbench) Keep(write func(io.Writer) error) (bundle.Kept, error) {
	p := w.place()
	err := host.PrepareFunc(w.h, p, w.attributes(0o600), func(f host.File) error { return write(f) })
	if err != nil {
		return nil, errors.Join(err, w.drop(p))
	}
	return &keptFile{w, p}, nil
}

type keptFile struct {
	w *workbench
	p string
}

// Open implements bundle.Kept.
func (k *keptFile) Open() (io.ReadCloser, error) { return k.w.h.Open(host.TempName(k.p)) }

// Drop implements bundle.Kept.
func (k *keptFile) Drop() error { return k.w.drop(k.p) }

// download is the content of an artifact, fetched when it is first opened.
func (w *workbench) download(a desired.Artifact) bundle.Content {
	p := w.place()
	a.Files = []desired.ArtifactFile{{Path: p, Mode: 0o600}}
	a.Via = nil // the node's way out is not this machine's
	there := false
	return bundle.Content{
		Local: true,
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			if !there {
				if err := w.fetch(ctx, &a); err != nil {
					return nil, err
				}
				there = true
			}
			return w.h.Open(host.TempName(p))
		},
		Free: func() error { return w.drop(p) },
	}
}

func (w *workbench) fetch(ctx context.Context, a *desired.Artifact) error {
	s := converge.Span{ID: a.ID(), Verb: converge.VerbFetch, Phase: "stage", Start: time.Now()}
	w.progress.observe(s)
	staged, err := w.fetcher.Stage(ctx, ownFiles{w.h}, a)
	s.End, s.Bytes = time.Now(), staged.Bytes
	if err != nil {
		s.Error = converge.GivenUp // the error itself is told once, at the end
	}
	w.progress.observe(s)
	if u, ok := errors.AsType[*artifact.UnpackError](err); ok && len(u.Missing) > 0 {
		return &bundle.SpecError{Reason: u.URL + " is an image, of which files are wanted; a bundle takes artifacts that are one file"}
	}
	if err == nil && staged.Unverified {
		w.progress.say("warning: " + a.Name + " came without a digest: the bundle has what " + staged.URL + " gave")
	}
	return failedFetch(err)
}

// failedFetch gives a download that failed a hint.
func failedFetch(err error) error {
	d, ok := errors.AsType[*artifact.DownloadError](err)
	if !ok {
		return err
	}
	return &exitcode.Error{Err: err, Remedy: or(d.Hint(), "check that the URL is right and answers from here; proxies are those of the environment (HTTPS_PROXY)")}
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
