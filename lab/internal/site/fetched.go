package site

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/lab"
)

// Fetched is what bytes cost a run of berth, by its own timeline.
type Fetched struct {
	Whole time.Duration // of the run
	Bytes int64
	// Fetching is the time from the first fetch's start to the last one's end.
	Fetching time.Duration
	// Waiting is the part of Fetching after all else that could be done
	// beforehand was done.
	Waiting time.Duration
}

// Share is the part of the run that waited for bytes alone.
func (f Fetched) Share() float64 { return f.Waiting.Seconds() / f.Whole.Seconds() }

// span is a line of the timeline.
type span struct {
	ID, Verb, Phase, Detail string
	Start, End              time.Time
	Bytes                   int64
}

// ReadFetched reads a node's last timeline. A fetch that does not say how much
// came from where is an error.
func ReadFetched(ctx context.Context, n *lab.Node) (Fetched, error) {
	text, err := n.Output(ctx, "berth", "timeline", "-o", "json")
	if err != nil {
		return Fetched{}, err
	}
	f, err := parseFetched([]byte(text))
	if err != nil {
		return f, fmt.Errorf("read timeline of %s: %w", n.Name, err)
	}
	return f, nil
}

func parseFetched(text []byte) (Fetched, error) {
	var line struct {
		Start, End time.Time
		Spans      []span
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return Fetched{}, err
	}
	f := Fetched{Whole: line.End.Sub(line.Start)}
	var first, last, others time.Time
	for _, s := range line.Spans {
		switch {
		case s.Phase != "stage":
		case s.Verb != "fetch":
			others = later(others, s.End)
		case s.Bytes == 0 || s.Detail == "":
			return f, fmt.Errorf("%s does not say how many bytes came from where", s.ID)
		default:
			f.Bytes += s.Bytes
			last = later(last, s.End)
			if first.IsZero() || s.Start.Before(first) {
				first = s.Start
			}
		}
	}
	f.Fetching, f.Waiting = last.Sub(first), max(0, min(last.Sub(first), last.Sub(others)))
	return f, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
