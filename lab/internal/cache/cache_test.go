package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestEntry(t *testing.T) {
	c := &Cache{Dir: t.TempDir()}
	var fills atomic.Int32
	fill := func(_ context.Context, dir string) error {
		fills.Add(1)
		return os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			dir, err := c.Entry(context.Background(), "kind", "key", fill)
			if err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "f")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := fills.Load(); n != 1 {
		t.Errorf("filled %d times", n)
	}
}

func TestEntryFails(t *testing.T) {
	c := &Cache{Dir: t.TempDir()}
	broken := errors.New("broken")
	_, err := c.Entry(context.Background(), "kind", "key", func(context.Context, string) error { return broken })
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if exists(filepath.Join(c.Dir, "kind", "key")) || exists(filepath.Join(c.Dir, "kind", ".new")) {
		t.Error("a failed fill left something")
	}
}

func TestKeyIsUnambiguous(t *testing.T) {
	if Key([]byte("ab"), []byte("c")) == Key([]byte("a"), []byte("bc")) {
		t.Error("two lists have the same key")
	}
}
