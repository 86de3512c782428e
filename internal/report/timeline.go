package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// Timeline is when each step of the last run started and ended.
type Timeline struct {
	Command    string          `json:"command"`
	Version    string          `json:"version,omitempty"`
	InstanceID string          `json:"instanceID,omitempty"`
	Start      time.Time       `json:"start"`
	End        time.Time       `json:"end"`
	ExitCode   int             `json:"exitCode"`
	Milestone  string          `json:"milestone,omitempty"`
	Spans      []converge.Span `json:"spans"`
}

// Save writes the timeline, for `berth timeline`. It may be the first to write
// where berth keeps its state.
func (t *Timeline) Save(h host.FS, p string) error {
	t.sort()
	b, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return fmt.Errorf("print timeline: %w", err)
	}
	if err := host.PrivateDir(h, path.Dir(p)); err != nil {
		return fmt.Errorf("write timeline: %w", err)
	}
	if err := writeInto(h, p, append(b, '\n')); err != nil {
		return fmt.Errorf("write timeline: %w", err)
	}
	return nil
}

// LoadTimeline reads what Save wrote.
func LoadTimeline(h host.FS, p string) (*Timeline, error) {
	b, err := h.ReadFile(p)
	if err != nil {
		return nil, fmt.Errorf("read timeline: %w", err)
	}
	t, err := ParseTimeline(b)
	if err != nil {
		return nil, fmt.Errorf("read timeline: %s: %w", p, err)
	}
	return t, nil
}

// ParseTimeline reads the JSON form.
func ParseTimeline(b []byte) (*Timeline, error) {
	t := &Timeline{}
	if err := json.Unmarshal(b, t); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Timeline) sort() {
	slices.SortStableFunc(t.Spans, func(a, b converge.Span) int {
		return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Phase, b.Phase))
	})
}

// end of a span; one that never ended lasts to the end of the run.
func (t *Timeline) spanEnd(s converge.Span) time.Time {
	if s.End.Before(s.Start) {
		return t.End
	}
	return s.End
}

func (t *Timeline) title() string {
	return fmt.Sprintf("%s · %s · exit code %d · %s", t.Command, t.Start.UTC().Format("2006-01-02 15:04:05 UTC"),
		t.ExitCode, roundMillis(t.End.Sub(t.Start)))
}

func label(s converge.Span) string {
	return strings.TrimSpace(string(s.Verb) + " " + string(s.ID))
}

// roundMillis prints a duration to a tenth of a millisecond below 10 ms, to a
// millisecond below 10 s, else to a tenth of a second.
func roundMillis(d time.Duration) string {
	switch {
	case 0 < d && d < 50*time.Microsecond:
		return "<0.1ms"
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// KeepTimeline keeps the timeline for `berth timeline`. It is not worth a failure.
func KeepTimeline(h host.Host, command, version string, start time.Time, res *converge.Result, code int) {
	if res == nil {
		return
	}
	t := &Timeline{
		Command: command, Version: version, Start: start, End: h.Now(), ExitCode: code, Spans: res.Timeline,
	}
	_ = t.Save(h, TimelinePath)
}
