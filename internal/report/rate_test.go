package report

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge"
)

func TestDoing(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, s := range map[string]converge.Span{
		"fetch artifact:runc":                      {},
		"fetch artifact:runc 25 % at 12.5 MB/s":    {Bytes: 25e6, Total: 100e6},
		"fetch artifact:runc 25.0 MB at 12.5 MB/s": {Bytes: 25e6, Total: -1},
	} {
		s.ID, s.Verb, s.Start = "artifact:runc", converge.VerbFetch, start
		if got := doing(s, start.Add(2*time.Second)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
