package report

import (
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/converge"
)

// doing says what an action does, a download with how far it is and how fast.
func doing(s converge.Span, now time.Time) string {
	text := string(s.Verb) + " " + string(s.ID)
	if s.Bytes == 0 {
		return text
	}
	if s.Total > 0 {
		text += fmt.Sprintf(" %d %%", 100*s.Bytes/s.Total)
	} else {
		text += fmt.Sprintf(" %.1f MB", float64(s.Bytes)/1e6)
	}
	return text + rate(s.Bytes, now.Sub(s.Start))
}

// rate is " at N MB/s", or nothing where that would be a guess.
func rate(bytes int64, took time.Duration) string {
	if bytes == 0 || took < time.Millisecond {
		return ""
	}
	return fmt.Sprintf(" at %.1f MB/s", float64(bytes)/1e6/took.Seconds())
}
