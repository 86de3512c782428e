package artifact

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Options bound what a Fetcher takes from elsewhere. Zero values are defaults.
type Options struct {
	// Budget bounds all tries for one artifact: 5 minutes.
	Budget time.Duration
	// Stall is how long a download may send nothing before it counts as dead: 30 s.
	Stall time.Duration
	// MaxBytes bounds a download, MaxUnpacked what comes out of it: 2 and 8 GiB.
	MaxBytes, MaxUnpacked int64
	// Client makes the requests; nil is a client of its own.
	Client *http.Client
}

// Fetcher implements converge.Fetcher. It is safe for use by several goroutines.
type Fetcher struct {
	opt      Options
	versions versions
}

// New returns a fetcher.
func New(o Options) *Fetcher {
	if o.Budget == 0 {
		o.Budget = 5 * time.Minute
	}
	if o.Stall == 0 {
		o.Stall = 30 * time.Second
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 2 << 30
	}
	if o.MaxUnpacked == 0 {
		o.MaxUnpacked = 8 << 30
	}
	if o.Client == nil {
		o.Client = newClient()
	}
	return &Fetcher{opt: o}
}

// Stage brings the artifact's files onto the machine under their temporary
// names. URLs are tried in order; one that does not answer is tried again after
// the others, with growing pauses, within the budget. Errors: *AbsentError (no
// URL), *RefusedError, *DigestError, *UnpackError, *DownloadError (with the
// last cause), or the file system's own (ENOSPC).
func (f *Fetcher) Stage(ctx context.Context, h host.Host, a *desired.Artifact) (converge.Staged, error) {
	sources, err := f.sources(h, a)
	if err != nil {
		return converge.Staged{}, err
	}
	budget, cancel := context.WithTimeout(ctx, f.opt.Budget)
	defer cancel()
	t := &tries{fetcher: f, h: h, a: a, sources: sources, start: time.Now()}
	staged, err := backoff.Retry(budget, func() (converge.Staged, error) { return t.round(budget) },
		backoff.WithBackOff(&backoff.ExponentialBackOff{InitialInterval: 250 * time.Millisecond, Multiplier: 2, RandomizationFactor: 0.3, MaxInterval: 10 * time.Second}),
		backoff.WithMaxElapsedTime(0))
	if err == nil {
		return staged, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return converge.Staged{}, fmt.Errorf("download %s: %w", a.Name, context.Cause(ctx))
	}
	return converge.Staged{}, t.verdict()
}

func (f *Fetcher) sources(h host.FS, a *desired.Artifact) ([]source, error) {
	if len(a.URLs) == 0 {
		return nil, &AbsentError{Name: a.Name, Paths: paths(a)}
	}
	known, err := readDigests(h)
	if err != nil {
		return nil, err
	}
	var all []source
	for _, raw := range a.URLs {
		s, err := parseSource(raw, a, known)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func paths(a *desired.Artifact) []string {
	var all []string
	for _, f := range a.Files {
		all = append(all, f.Path)
	}
	return all
}

// tries are the attempts at one artifact.
type tries struct {
	fetcher  *Fetcher
	h        host.Host
	a        *desired.Artifact
	sources  []source
	start    time.Time
	attempts int
	// last is the error that says most, and where it came from.
	last   error
	lastAt source
	// dead are sources that no further try will change, by index.
	dead map[int]bool
}

// round tries each source that is not dead once. Its error is permanent where
// no other round can do better.
func (t *tries) round(ctx context.Context) (converge.Staged, error) {
	for i, s := range t.sources {
		if t.dead[i] {
			continue
		}
		t.attempts++
		staged, err := t.fetcher.one(ctx, t.h, t.a, s)
		if err == nil {
			return staged, nil
		}
		if local(err) {
			t.last = err
			return staged, backoff.Permanent(err)
		}
		t.note(ctx, i, err)
	}
	if len(t.dead) == len(t.sources) {
		return converge.Staged{}, backoff.Permanent(t.last)
	}
	return converge.Staged{}, t.last
}

// note keeps an error. What the end of the budget cut off says less than what
// came before it.
func (t *tries) note(ctx context.Context, i int, err error) {
	if t.last == nil || ctx.Err() == nil {
		t.last, t.lastAt = err, t.sources[i]
	}
	if hopeless(err) {
		if t.dead == nil {
			t.dead = map[int]bool{}
		}
		t.dead[i] = true
	}
}

func (t *tries) verdict() error {
	if local(t.last) || isContent(t.last) {
		return t.last
	}
	return &DownloadError{Name: t.a.Name, URL: t.lastAt.shown(), Status: statusOf(t.last), Attempts: t.attempts, Elapsed: time.Since(t.start), Err: t.last}
}

// isContent says that an answer came and is not what was wanted.
func isContent(err error) bool {
	_, digest := errors.AsType[*DigestError](err)
	_, unpack := errors.AsType[*UnpackError](err)
	_, refused := errors.AsType[*RefusedError](err)
	return digest || unpack || refused
}

// hopeless says that this source will give nothing else.
func hopeless(err error) bool {
	status := statusOf(err)
	transient := status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests
	return isContent(err) || status >= 400 && status < 500 && !transient
}

// local says that the machine itself is the cause: other URLs don't help.
func local(err error) bool {
	_, ok := errors.AsType[*hostError](err)
	return ok
}
