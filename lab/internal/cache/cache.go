// Package cache keeps what is expensive to build: each entry is a directory
// named by the hash of everything that went into it.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/lab/internal/progress"
	"golang.org/x/sys/unix"
)

// Cache is a directory of entries, shared by all labs of a machine.
type Cache struct {
	Dir string
	Log *progress.Log
}

// Open opens the cache at $BERTH_LAB_CACHE, else $XDG_CACHE_HOME/berth-lab,
// else /var/cache/berth-lab, and creates it if needed.
func Open(log *progress.Log) (*Cache, error) {
	dir := defaultDir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create lab cache: %w", err)
	}
	return &Cache{Dir: dir, Log: log}, nil
}

func defaultDir() string {
	if d := os.Getenv("BERTH_LAB_CACHE"); d != "" {
		return d
	}
	if d := os.Getenv("XDG_CACHE_HOME"); d != "" {
		return filepath.Join(d, "berth-lab")
	}
	return "/var/cache/berth-lab"
}

// Key hashes parts into a short name. Parts are length-prefixed, so that no
// two lists collide.
func Key(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// FileKey hashes the contents of files and a recipe text.
func FileKey(recipe string, files ...string) (string, error) {
	parts := [][]byte{[]byte(recipe)}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("hash cache input: %w", err)
		}
		parts = append(parts, b)
	}
	return Key(parts...), nil
}

// Entry returns the directory of kind/key. If it is absent, fill is called
// with an empty directory beside it that becomes the entry when fill returns
// nil. A second process that wants the same kind waits.
func (c *Cache) Entry(ctx context.Context, kind, key string, fill func(ctx context.Context, dir string) error) (string, error) {
	dir := filepath.Join(c.Dir, kind, key)
	if exists(dir) {
		touch(dir)
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("create cache entry: %w", err)
	}
	unlock, err := c.lock(ctx, kind)
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(dir) {
		return dir, nil
	}
	return dir, c.fill(ctx, dir, fill)
}

func (c *Cache) fill(ctx context.Context, dir string, fill func(context.Context, string) error) error {
	tmp := filepath.Join(filepath.Dir(dir), ".new")
	if err := os.RemoveAll(tmp); err != nil {
		return fmt.Errorf("clean cache: %w", err)
	}
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return fmt.Errorf("create cache entry: %w", err)
	}
	if err := fill(ctx, tmp); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("complete cache entry: %w", err)
	}
	return nil
}

// lock takes the lock of a kind. The kernel drops it when the process ends.
func (c *Cache) lock(ctx context.Context, kind string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(c.Dir, kind, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open cache lock: %w", err)
	}
	for said := false; ; said = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock cache: %w", err)
		}
		if !said {
			c.Log.Printf("another process builds %s; waiting for it", kind)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for the cache lock of %s: %w", kind, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Prune removes the entries of a kind that were not used for longer than age,
// except the one named keep.
func (c *Cache) Prune(kind, keep string, age time.Duration) error {
	entries, err := os.ReadDir(filepath.Join(c.Dir, kind))
	if err != nil {
		return fmt.Errorf("list cache: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || e.Name() == keep || e.Name() == ".new" {
			continue
		}
		if time.Since(info.ModTime()) > age {
			if err := os.RemoveAll(filepath.Join(c.Dir, kind, e.Name())); err != nil {
				return fmt.Errorf("prune cache: %w", err)
			}
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// touch marks an entry as used. A cache on a read-only disk still works.
func touch(dir string) { _ = os.Chtimes(dir, time.Now(), time.Now()) }
