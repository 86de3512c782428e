package pause

import (
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/host/memory"
)

func TestPause(t *testing.T) {
	h := memory.New()
	if end := Until(h, nil); !end.IsZero() {
		t.Error(end)
	}
	for range 2 { // a longer one over a shorter
		want, err := Set(h, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if end := Until(h, nil); !end.Equal(want) || end.Sub(h.Now()) < 59*time.Minute {
			t.Error(end, want)
		}
	}
	for range 2 {
		if _, err := Set(h, 0); err != nil {
			t.Error(err)
		}
	}
	if end := Until(h, nil); !end.IsZero() {
		t.Error(end)
	}
}

func TestAnnotation(t *testing.T) {
	h := memory.New()
	at := func(d time.Duration) string { return h.Now().Add(d).Format(time.RFC3339) }
	for name, c := range map[string]struct {
		file, note string
		want       time.Duration
	}{
		"neither":          {"", "", 0},
		"annotation":       {"", at(time.Hour), time.Hour},
		"the later counts": {at(time.Hour), at(2 * time.Hour), 2 * time.Hour},
		"the file's":       {at(2 * time.Hour), at(time.Hour), 2 * time.Hour},
		"garbage":          {"soon", "later", 0},
		"for ever":         {"9999-01-01T00:00:00Z", "9999-01-01T00:00:00Z", 0},
	} {
		h.Put(Path, c.file, 0o600)
		n := &core.Node{}
		n.Annotations = map[string]string{Annotation: c.note}
		if got := max(0, Until(h, n).Sub(h.Now()).Round(time.Minute)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
