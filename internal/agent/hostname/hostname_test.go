package hostname

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/host/memory"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(*memory.Host)
		want error
	}{
		"stays":         {func(*memory.Host) {}, nil},
		"other case":    {func(h *memory.Host) { h.Put(file, "NODE-1\n", 0o644) }, nil},
		"changed":       {func(h *memory.Host) { h.Put(file, "node-2\n", 0o644) }, ErrChanged},
		"empty":         {func(h *memory.Host) { h.Put(file, "\n", 0o644) }, nil},
		"can't be read": {func(h *memory.Host) { _ = h.Remove(file) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := memory.New()
				h.Put(file, "Node-1\n", 0o644)
				started, err := Read(h)
				if err != nil || started != "node-1" {
					t.Fatal(started, err)
				}
				tc.then(h)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				if err := (Check{h, started}).Run(ctx); !errors.Is(err, tc.want) {
					t.Error(err)
				}
				if tc.want != nil && time.Since(began) != every {
					t.Errorf("after %s", time.Since(began))
				}
			})
		})
	}
}

func TestRead(t *testing.T) {
	h := memory.New()
	for _, bad := range []string{"", " \n"} {
		h.Put(file, bad, 0o644)
		if name, err := Read(h); err == nil {
			t.Errorf("%q is the name %q", bad, name)
		}
	}
	_ = h.Remove(file)
	if name, err := Read(h); err == nil {
		t.Errorf("no file is the name %q", name)
	}
}
