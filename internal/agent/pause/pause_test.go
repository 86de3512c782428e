package pause

import (
	"fmt"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/host/memory"
)

// up has the machine be up for a while.
func up(h *memory.Host, d time.Duration) {
	h.Put("/proc/uptime", fmt.Sprintf("%.2f 7.00\n", d.Seconds()), 0o444)
}

// left is how long a pause lasts, to the minute.
func left(h *memory.Host, n *core.Node) time.Duration {
	return max(0, Until(h, n).Sub(h.Now()).Round(time.Minute))
}

func TestPause(t *testing.T) {
	h := memory.New()
	if _, err := Set(h, time.Hour); err == nil {
		t.Error("a pause without an end")
	}
	up(h, 5*time.Minute)
	if end := Until(h, nil); !end.IsZero() {
		t.Error(end)
	}
	for range 2 { // a longer one over a shorter
		want, err := Set(h, time.Hour)
		if err != nil || want.Sub(h.Now()).Round(time.Minute) != time.Hour {
			t.Fatal(want, err)
		}
		if got := left(h, nil); got != time.Hour {
			t.Error(got)
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

// TestPauseWhileTheClockJumps: it ends with its time, whatever the clock says.
func TestPauseWhileTheClockJumps(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour, 40 * 24 * time.Hour, -40 * 24 * time.Hour} {
		h := memory.New()
		up(h, 5*time.Minute)
		if _, err := Set(h, 30*time.Minute); err != nil {
			t.Fatal(err)
		}
		h.Advance(by)
		up(h, 25*time.Minute)
		if got := left(h, nil); got != 10*time.Minute {
			t.Errorf("%s: %s left", by, got)
		}
		up(h, 36*time.Minute)
		if got := left(h, nil); got != 0 {
			t.Errorf("%s: %s left of what is over", by, got)
		}
	}
}

func TestAnnotation(t *testing.T) {
	h := memory.New()
	up(h, time.Minute)
	at := func(d time.Duration) string { return h.Now().Add(d).Format(time.RFC3339) }
	in := func(d time.Duration) string { return fmt.Sprintf("%.2f\n", (time.Minute + d).Seconds()) }
	for name, c := range map[string]struct {
		file, note string
		want       time.Duration
	}{
		"neither":          {"", "", 0},
		"annotation":       {"", at(time.Hour), time.Hour},
		"the later counts": {in(time.Hour), at(2 * time.Hour), 2 * time.Hour},
		"the file's":       {in(2 * time.Hour), at(time.Hour), 2 * time.Hour},
		"garbage":          {"soon", "later", 0},
		"for ever":         {"999999999\n", "9999-01-01T00:00:00Z", 0},
		"no number":        {"NaN", "", 0},
		"infinite":         {"Inf", "", 0},
		"negative":         {"-5", "", 0},
	} {
		h.Put(Path, c.file, 0o600)
		n := &core.Node{}
		n.Annotations = map[string]string{Annotation: c.note}
		if got := left(h, n); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if err := Refused(h, n); (err != nil) != (c.note != "" && c.want == 0) {
			t.Errorf("%s: refused: %v", name, err)
		}
	}
}
