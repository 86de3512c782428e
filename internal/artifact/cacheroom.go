package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// DefaultCacheBytes is how much room the cache takes for files that are nowhere
// else: 2 GiB.
const DefaultCacheBytes = 2 << 30

// usage is what an entry costs.
type usage struct {
	key  string
	kept time.Time
	// alone are the bytes of files that have no other name.
	alone int64
}

// makeRoom drops what is no entry, then the oldest entries until the files that
// only the cache still has fit the bound. The entry named spare stays.
func (f *Fetcher) makeRoom(h host.FS, spare string) error {
	names, err := h.ReadDir(artifactDir)
	if err != nil {
		return err
	}
	var all []usage
	var total int64
	var errs []error
	for _, key := range names {
		u, err := measure(h, key)
		if err != nil {
			errs = append(errs, dropEntry(h, key))
			continue
		}
		total += u.alone
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b usage) int { return cmp.Or(a.kept.Compare(b.kept), cmp.Compare(a.key, b.key)) })
	for _, u := range all {
		if total <= f.opt.CacheBytes {
			break
		}
		if u.key == spare || u.alone == 0 {
			continue
		}
		errs = append(errs, dropEntry(h, u.key))
		total -= u.alone
	}
	return errors.Join(errs...)
}

// emptyCache gives the room of all that only the cache has back to a full disk;
// false if there was none.
func (f *Fetcher) emptyCache(ctx context.Context, h host.Host) bool {
	if _, err := h.Lstat(artifactDir); err != nil {
		return false
	}
	unlock, err := lockCache(ctx, h)
	if err != nil {
		return false
	}
	defer func() { _ = unlock() }()
	names, err := h.ReadDir(artifactDir)
	if err != nil {
		return false
	}
	var freed bool
	for _, key := range names {
		if u, err := measure(h, key); err == nil && u.alone == 0 {
			continue
		}
		freed = dropEntry(h, key) == nil || freed
	}
	return freed
}

func measure(h host.FS, key string) (usage, error) {
	e, err := readEntry(h, key)
	if err != nil {
		return usage{}, err
	}
	u := usage{key: key}
	at, err := h.Lstat(path.Join(artifactDir, key, entryName))
	if err != nil {
		return usage{}, err
	}
	u.kept = at.ModTime
	for i := range e.Files {
		info, err := h.Lstat(path.Join(artifactDir, key, fmt.Sprint(i)))
		if err != nil {
			return usage{}, err
		}
		if info.Links == 1 {
			u.alone += info.Size
		}
	}
	return u, nil
}
