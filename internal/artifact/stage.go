package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Options bound what a Fetcher takes from elsewhere. Zero values are defaults.
type Options struct {
	// Budget is for how long an artifact may make no progress, over all tries and
	// sources: 5 minutes.
	Budget time.Duration
	// Stall is how long a source may send nothing, or next to nothing, before it
	// counts as dead: 30 s.
	Stall time.Duration
	// MaxBytes bounds a download, MaxUnpacked what comes out of it: 2 and 8 GiB.
	MaxBytes, MaxUnpacked int64
	// CacheBytes bounds the cache (DefaultCacheBytes); negative: no cache.
	CacheBytes int64
	// RequireDigests refuses what nobody gives a digest for.
	RequireDigests bool
	// Arch is the architecture of the programs, as GOARCH; "" is this machine's.
	Arch string
	// Client makes the requests; nil is a client of its own.
	Client *http.Client
	// Identity says who the machine is to registries over an HTTP client: the one of a
	// way out, or where that is nil, its own. A nil function: all are asked anonymously.
	Identity Identity
}

// Identity is as azure.RegistryIdentity.
type Identity func(*http.Client, *desired.ManagedIdentity) remote.Credentials

func (o *Options) complete() {
	o.Budget = cmp.Or(o.Budget, 5*time.Minute)
	o.Stall = cmp.Or(o.Stall, 30*time.Second)
	o.MaxBytes = cmp.Or(o.MaxBytes, 2<<30)
	o.MaxUnpacked = cmp.Or(o.MaxUnpacked, 8<<30)
	o.CacheBytes = cmp.Or(o.CacheBytes, DefaultCacheBytes)
	o.Arch = cmp.Or(o.Arch, runtime.GOARCH)
	if o.Client == nil {
		o.Client = newClient()
	}
}

// passes is how many artifacts are unpacked at once: each needs some 3 MB of
// buffers, one compressed with zstd its window besides.
const passes = 10

// Fetcher implements converge.Fetcher. It is safe for use by several goroutines.
type Fetcher struct {
	opt        Options
	versions   versions
	clients    clients
	registries registries
	slots      chan struct{}
	window     chan struct{}
}

// New returns a fetcher.
func New(o Options) *Fetcher {
	o.complete()
	return &Fetcher{opt: o, slots: make(chan struct{}, passes), window: make(chan struct{}, 1)}
}

// Stage brings the artifact's files onto the machine under their temporary
// names: out of the cache, or from its URLs in order. A source that breaks off is
// continued where it stopped, by another one if they promise the same digest; one
// that does not answer is tried again after the others, with growing pauses,
// until nothing has come for the budget. Errors: *AbsentError (no URL),
// *RefusedError, *DigestError, *UnpackError, *DownloadError (with the last
// cause), or the file system's own (ENOSPC).
func (f *Fetcher) Stage(ctx context.Context, h host.Host, a *desired.Artifact) (converge.Staged, error) {
	sources, err := f.sources(h, a)
	if err != nil {
		return converge.Staged{}, err
	}
	if staged, ok := f.cached(ctx, h, a, sources); ok {
		return staged, nil
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return converge.Staged{}, fmt.Errorf("download %s: %w", a.Name, context.Cause(ctx))
	}
	staged, err := newTries(ctx, f, h, a, sources).run(ctx)
	if errors.Is(err, syscall.ENOSPC) && f.emptyCache(ctx, h) {
		staged, err = newTries(ctx, f, h, a, sources).run(ctx)
	}
	switch {
	case err == nil:
		f.keep(ctx, h, a, staged)
	case errors.Is(ctx.Err(), context.Canceled):
		return converge.Staged{}, fmt.Errorf("download %s: %w", a.Name, context.Cause(ctx))
	}
	return staged, err
}

func (f *Fetcher) sources(h host.FS, a *desired.Artifact) ([]*source, error) {
	packed, err := f.bundled(h, a)
	if err != nil {
		return nil, err
	}
	if len(packed)+len(a.Addresses()) == 0 {
		return nil, &AbsentError{Name: a.Name, Paths: pathsOf(a)}
	}
	known, err := readDigests(h)
	if err != nil {
		return nil, err
	}
	var online []*source
	for _, raw := range a.Addresses() {
		s, err := f.parseSource(h, raw, a, known)
		if e, ok := errors.AsType[*RefusedError](err); ok && e.NoDigest && len(packed) > 0 {
			continue // the bundle has it, with its digest
		}
		if err != nil {
			return nil, err
		}
		online = append(online, s)
	}
	promised := promises(a, online)
	if err := hold(online, promised); err != nil {
		return nil, err
	}
	packed, err = agreeing(packed, promised)
	if err == nil && len(packed)+len(online) == 0 {
		err = &AbsentError{Name: a.Name, Paths: pathsOf(a)}
	}
	return append(packed, online...), err
}

// hold makes a source without digest promise what the others do: mirrors hold
// the same, and whoever can make the first one fail must not choose the content.
func hold(online []*source, promised []string) error {
	slices.Sort(promised)
	promised = slices.Compact(promised)
	for _, s := range online {
		switch {
		case len(promised) == 0 || s.digest != "" || s.pin != "":
		case len(promised) > 1:
			return s.unknown("the other URLs give different digests, and this one none")
		default:
			s.digest, s.from = promised[0], "another URL of it"
		}
	}
	return nil
}

// promises are the digests that document, list and URLs give.
func promises(a *desired.Artifact, online []*source) []string {
	var all []string
	if a.SHA256 != "" {
		all = append(all, strings.ToLower(a.SHA256))
	}
	for _, s := range online {
		if s.digest != "" {
			all = append(all, s.digest)
		}
	}
	return all
}

func pathsOf(a *desired.Artifact) []string {
	var all []string
	for _, f := range a.Files {
		all = append(all, f.Path)
	}
	return all
}

// tries are the attempts at one artifact.
type tries struct {
	opt     Options
	fetcher *Fetcher
	h       host.Host
	a       *desired.Artifact
	groups  []*group
	now     func() time.Time
	start   time.Time
	told    time.Time
	ctx     context.Context
	// got are the bytes of the present pass, best those of the one that came
	// furthest; idle is how long was waited since for other people.
	got, best int64
	idle      atomic.Int64
	pauses    *backoff.ExponentialBackOff
	attempts  int
	// last is the error that says most, and where it came from.
	last   error
	lastAt *source
}

// group are sources that promise the same content, or a single one that promises
// nothing.
type group struct {
	sources []*source
	digest  string
	// alone: what several gave together was wrong; each has to give it all.
	alone bool
}

func newTries(ctx context.Context, f *Fetcher, h host.Host, a *desired.Artifact, sources []*source) *tries {
	t := &tries{ctx: ctx, opt: f.opt, fetcher: f, h: h, a: a, now: time.Now, start: time.Now()}
	t.pauses = newPauses()
	if end, ok := ctx.Deadline(); ok {
		// A run whose time is over says only that: what was wrong is to be said before.
		t.opt.Budget = min(t.opt.Budget, time.Until(end)*3/4)
	}
	t.last, t.lastAt = errNotAsked, sources[0]
	byDigest := map[string]*group{}
	for _, s := range sources {
		g := byDigest[s.digest]
		if g == nil || s.digest == "" {
			g = &group{digest: s.digest}
			byDigest[s.digest] = g
			t.groups = append(t.groups, g)
		}
		g.sources = append(g.sources, s)
	}
	return t
}

var errNotAsked = errors.New("no source was asked")

func newPauses() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: 250 * time.Millisecond, Multiplier: 2, RandomizationFactor: 0.3, MaxInterval: 10 * time.Second}
}

func (t *tries) run(ctx context.Context) (converge.Staged, error) {
	for {
		var alive []*source
		for _, g := range t.groups {
			for _, from := range g.parties() {
				if len(from) == 1 && from[0].resting(t.now()) {
					continue
				}
				staged, err := t.read(ctx, g, from)
				if err == nil {
					return staged, nil
				}
				if local(err) {
					return staged, err
				}
			}
			alive = append(alive, g.living()...)
		}
		if len(alive) == 0 || ctx.Err() != nil || !t.rest(ctx, alive) {
			return converge.Staged{}, t.failure()
		}
	}
}

// read makes one pass.
func (t *tries) read(ctx context.Context, g *group, from []*source) (converge.Staged, error) {
	t.got = 0
	if s := from[0]; g.digest == "" && s.stock != nil {
		return t.registryPass(ctx, s)
	}
	return t.pass(ctx, g, from)
}

// living are the sources of which something may still be had.
func (g *group) living() []*source {
	var all []*source
	for _, s := range g.sources {
		if s.alive() {
			all = append(all, s)
		}
	}
	return all
}

// parties are the sets of sources that make a pass each.
func (g *group) parties() [][]*source {
	living := g.living()
	if !g.alone && len(living) > 0 {
		return [][]*source{living}
	}
	var each [][]*source
	for _, s := range living {
		each = append(each, []*source{s})
	}
	return each
}

// progress counts what came: the budget and the pauses begin anew. The size is
// that of the whole, -1 if unknown.
func (t *tries) progress(n int, size int64) {
	if t.got += int64(n); t.got > t.best {
		t.best = t.got
		t.idle.Store(0)
		t.pauses.Reset()
	}
	if now := t.now(); now.Sub(t.told) >= tellEvery {
		t.told = now
		converge.Progress(t.ctx, t.got, size)
	}
}

// waited counts a wait for a source against the budget.
func (t *tries) waited(d time.Duration) { t.idle.Add(int64(d)) }

// tellEvery is how often progress is told: as often as people can see.
const tellEvery = 100 * time.Millisecond

// left is the rest of the budget, never zero.
func (t *tries) left() time.Duration {
	return max(t.opt.Budget-time.Duration(t.idle.Load()), time.Millisecond)
}

// rest waits until one of the sources may be asked again; false if the budget
// ends before that.
func (t *tries) rest(ctx context.Context, sources []*source) bool {
	pause := t.pauses.NextBackOff()
	wait := time.Duration(math.MaxInt64)
	for _, s := range sources {
		wait = min(wait, max(pause, s.until.Sub(t.now())))
	}
	if wait >= t.left() {
		return false
	}
	t.waited(wait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// note keeps an error, and what it says of the source.
func (t *tries) note(s *source, err error) {
	if (t.ctx.Err() != nil || errors.Is(err, errTimeOver)) && !errors.Is(t.last, errNotAsked) {
		return // that the time is over says less than what was wrong before
	}
	t.last, t.lastAt = err, s
	s.dead = s.dead || hopeless(err)
	if e, ok := errors.AsType[*statusError](err); ok && e.wait > 0 {
		s.until = t.now().Add(e.wait)
	}
}

// blame notes an error of the content as a whole: where one source gave all of
// it, that one (at) is dead.
func (t *tries) blame(g *group, at *source, used []*source, err error) {
	if len(used) > 1 {
		g.alone = true
		t.last, t.lastAt = err, used[0]
		return
	}
	t.note(at, err)
}

func (t *tries) failure() error {
	if local(t.last) || isContent(t.last) {
		return t.last
	}
	return &DownloadError{Name: t.a.Name, URL: t.lastAt.shown(), Status: statusOf(t.last), Attempts: t.attempts, Elapsed: time.Since(t.start), Err: t.last}
}
