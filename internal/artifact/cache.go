package artifact

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// The cache holds, per download, the files that were taken out of it:
//
//	/var/lib/berth/cache/artifacts/<sha256 of the download>/{entry.json,0,1,…}
//
// They are other names (hard links) of the files that were installed, so that
// keeping them costs no writing and no room for as long as those are there. A
// file that was changed since is known by size, times and inode; its entry is
// dropped. Nothing here is made durable by itself: what a power cut takes away or
// damages is fetched again.
const (
	artifactDir = cacheDir + "/artifacts"
	cacheLock   = cacheDir + "/lock"
	entryName   = "entry.json"
)

// lockPatience bounds the wait for another program that uses the cache: it holds
// the lock for moments.
const lockPatience = 10 * time.Second

// entry describes a download whose files are kept.
type entry struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	URL     string `json:"url"`
	SHA256  string `json:"sha256"`
	Bytes   int64  `json:"bytes"`
	// Unverified: nobody had promised the digest.
	Unverified bool        `json:"unverified,omitempty"`
	Files      []entryFile `json:"files"`
}

// entryFile is a file of an entry; its name is its index.
type entryFile struct {
	Member  string `json:"member,omitempty"`
	Mode    string `json:"mode"`
	Version string `json:"version"`
}

// fileVersion tells versions of a file apart without reading it.
func fileVersion(i host.Info) string {
	return fmt.Sprintf("%d %d %d", i.Inode, i.Size, i.ModTime.UnixNano())
}

// cached stages an artifact from the cache. Whatever goes wrong there means that
// it has to be fetched.
func (f *Fetcher) cached(ctx context.Context, h host.Host, a *desired.Artifact, sources []*source) (staged converge.Staged, ok bool) {
	return f.kept(ctx, h, a, func() []string { return f.candidates(h, a, sources) })
}

// kept stages an artifact from the first entry that serves.
func (f *Fetcher) kept(ctx context.Context, h host.Host, a *desired.Artifact, keys func() []string) (staged converge.Staged, ok bool) {
	if _, err := h.Lstat(artifactDir); err != nil || f.opt.CacheBytes < 0 {
		return staged, false
	}
	unlock, err := lockCache(ctx, h)
	if err != nil {
		return staged, false
	}
	defer func() { _ = unlock() }()
	for _, key := range keys() {
		e, err := readEntry(h, key)
		if err != nil || !e.serves(a) || e.Unverified && f.opt.RequireDigests {
			continue
		}
		if err := e.stage(h, key, a); err != nil {
			_ = dropEntry(h, key)
			continue
		}
		// What was asked for since may be another version of the same digest.
		if err := f.checkPrograms(h, a, e.URL); err != nil {
			unstage(h, a)
			continue
		}
		return converge.Staged{URL: e.URL, SHA256: e.SHA256, Bytes: e.Bytes, Unverified: e.Unverified, Cached: true}, true
	}
	return staged, false
}

// candidates are the entries that may hold an artifact: those of its digests, or
// where there is none, those of its name and version.
func (f *Fetcher) candidates(h host.FS, a *desired.Artifact, sources []*source) []string {
	var keys []string
	for _, s := range sources {
		if key := cmp.Or(s.digest, s.pin); key != "" {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 || a.Version == "" {
		return keys
	}
	all, err := h.ReadDir(artifactDir)
	if err != nil {
		return nil
	}
	for _, key := range all {
		if e, err := readEntry(h, key); err == nil && e.Name == a.Name && e.Version == a.Version && (!e.Unverified || e.isOf(sources)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// isOf says whether an entry came from one of the sources.
func (e *entry) isOf(sources []*source) bool {
	return slices.ContainsFunc(sources, func(s *source) bool { return s.shown() == e.URL })
}

func readEntry(h host.FS, key string) (*entry, error) {
	text, err := h.ReadFile(path.Join(artifactDir, key, entryName))
	if err != nil {
		return nil, err
	}
	e := &entry{}
	if err := json.Unmarshal(text, e); err != nil {
		return nil, err
	}
	if e.SHA256 != key {
		return nil, errors.New("entry of another download")
	}
	return e, nil
}

// serves says whether an entry holds all that an artifact wants.
func (e *entry) serves(a *desired.Artifact) bool {
	for _, f := range a.Files {
		if e.index(f) < 0 {
			return false
		}
	}
	return true
}

func (e *entry) index(f desired.ArtifactFile) int {
	for i, have := range e.Files {
		if member(have.Member) == member(f.Member) && have.Mode == f.Mode.String() {
			return i
		}
	}
	return -1
}

var errTouched = errors.New("changed since it was kept")

// stage gives the files their temporary names; on an error none is left.
func (e *entry) stage(h host.Host, key string, a *desired.Artifact) (err error) {
	defer func() {
		if err != nil {
			unstage(h, a)
		}
	}()
	for _, f := range a.Files {
		i := e.index(f)
		kept := path.Join(artifactDir, key, fmt.Sprint(i))
		info, err := h.Lstat(kept)
		if err != nil {
			return err
		}
		if !info.IsRegular() || fileVersion(info) != e.Files[i].Version || info.Mode.Perm() != f.Mode.Perm() || info.UID != 0 || info.GID != 0 {
			return errTouched
		}
		if err := again(h, kept, f); err != nil {
			return err
		}
	}
	return nil
}

// unstage takes the temporary names away.
func unstage(h host.FS, a *desired.Artifact) {
	for _, f := range a.Files {
		_ = h.Remove(host.TempName(f.Path)) // gone, or the next run's to remove
	}
}

// again gives a kept file the temporary name of f: as another name of the same
// file, or where that can't be, as a copy.
func again(h host.Host, kept string, f desired.ArtifactFile) error {
	tmp := host.TempName(f.Path)
	if err := h.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := h.Link(kept, tmp); err == nil {
		return nil
	}
	from, err := h.Open(kept)
	if err != nil {
		return err
	}
	defer from.Close()
	s := newStaging(h)
	return errors.Join(s.put(f, from), s.wait())
}

// keep puts what was staged into the cache, then makes room. It is best effort for
// later runs: its errors end nothing.
func (f *Fetcher) keep(ctx context.Context, h host.Host, a *desired.Artifact, staged converge.Staged) {
	if f.opt.CacheBytes < 0 {
		return
	}
	unlock, err := lockCache(ctx, h)
	if err != nil {
		return
	}
	defer func() { _ = unlock() }()
	e := &entry{Name: a.Name, Version: a.Version, URL: staged.URL, SHA256: staged.SHA256, Bytes: staged.Bytes, Unverified: staged.Unverified}
	if err := e.write(h, a); err != nil {
		_ = dropEntry(h, e.SHA256)
	}
	_ = f.makeRoom(h, e.SHA256)
}

// write makes the entry; its description comes last.
func (e *entry) write(h host.Host, a *desired.Artifact) error {
	if err := dropEntry(h, e.SHA256); err != nil {
		return err
	}
	dir := path.Join(artifactDir, e.SHA256)
	if err := h.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i, f := range a.Files {
		kept := path.Join(dir, fmt.Sprint(i))
		if err := keepFile(h, host.TempName(f.Path), kept, f); err != nil {
			return err
		}
		info, err := h.Lstat(kept)
		if err != nil {
			return err
		}
		e.Files = append(e.Files, entryFile{Member: f.Member, Mode: f.Mode.String(), Version: fileVersion(info)})
	}
	return e.describe(h, path.Join(dir, entryName))
}

// keepFile gives a staged file a second name, or, where the cache is on another
// file system, makes a copy.
func keepFile(h host.Host, staged, kept string, f desired.ArtifactFile) error {
	err := h.Link(staged, kept)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	from, err := h.Open(staged)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := h.Create(kept)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(writer{to}, from, make([]byte, aheadSize))
	return errors.Join(err, to.Chown(0, 0), to.Chmod(f.Mode.Perm()), to.Close())
}

func (e *entry) describe(h host.FS, p string) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	to, err := h.Create(p)
	if err != nil {
		return err
	}
	_, err = to.Write(append(text, '\n'))
	return errors.Join(err, to.Close())
}

func lockCache(ctx context.Context, h host.Host) (unlock func() error, err error) {
	for _, dir := range []string{paths.StateDir, cacheDir, artifactDir} {
		if err := h.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	return h.Lock(ctx, cacheLock, "artifact cache")
}

// dropEntry removes an entry with all that is in it.
func dropEntry(h host.FS, key string) error {
	if key == "" || strings.ContainsRune(key, '/') {
		return fmt.Errorf("%q is not an entry", key)
	}
	dir := path.Join(artifactDir, key)
	names, err := h.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := h.Remove(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return h.Remove(dir)
}
