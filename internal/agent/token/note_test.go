package token

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host/memory"
)

// TestTakeAway: what the tokens were put into goes, and what others put beside them
// stays.
func TestTakeAway(t *testing.T) {
	h := memory.New()
	h.PutDir("/var/lib/one")
	h.PutDir("/var/lib/berth")
	before := h.Tree("/var/lib/one")
	keep(t, h, func(c *cluster, _ *events) {
		c.has("first", "a")
		c.has("second", "b")
		c.has("second", "c")
	})
	h.Put("/var/lib/two/theirs", "x", 0o644)
	for range 2 {
		if kept, err := TakeAway(h); err != nil || len(kept) > 0 {
			t.Fatal(kept, err)
		}
		if d := cmp.Diff(before, h.Tree("/var/lib/one")); d != "" {
			t.Error(d)
		}
		for _, p := range []string{one, two, "/var/lib/two/deep", NotePath} {
			if _, err := h.Lstat(p); err == nil {
				t.Errorf("%s is left", p)
			}
		}
		if _, err := h.ReadFile("/var/lib/two/theirs"); err != nil {
			t.Error(err)
		}
	}
}

// TestTakesAwayNothingOfOthers: a file that was there before the agent stays, and one
// that is no longer as the agent wrote it is told of.
func TestTakesAwayNothingOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*memory.Host)
		after  func(*memory.Host)
		told   bool
		stays  bool
	}{
		"there before": {before: func(h *memory.Host) { h.Put(one, "theirs", 0o600) }, stays: true},
		"edited":       {after: func(h *memory.Host) { h.Overwrite(one, "theirs") }, told: true, stays: true},
		"directory":    {after: func(h *memory.Host) { _ = h.Remove(one); h.PutDir(one) }, told: true, stays: true},
		"linked":       {after: func(h *memory.Host) { _ = h.Remove(one); h.PutLink("/etc/theirs", one, 0) }, told: true, stays: true},
		"removed":      {after: func(h *memory.Host) { _ = h.Remove(one) }},
		// The note of a token is there before the token.
		"token before the last": {after: func(h *memory.Host) { h.Overwrite(one, "a") }},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			h.PutDir("/var/lib/one")
			h.PutDir("/var/lib/berth")
			if c.before != nil {
				c.before(h)
			}
			keep(t, h, func(k *cluster, _ *events) {
				k.has("first", "a")
				k.has("first", "b")
				wantFile(t, h, one, "b")
			})
			if c.after != nil {
				c.after(h)
			}
			kept, err := TakeAway(h)
			if err != nil || (len(kept) > 0) != c.told || c.told && !strings.HasPrefix(kept[0], one+" ") {
				t.Errorf("kept %q, %v", kept, err)
			}
			if _, err := h.Lstat(one); (err == nil) != c.stays {
				t.Error(err)
			}
		})
	}
}
