package bench

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Print writes a table: seconds, and their ratio to those of the image with
// all programs.
func (b *Bare) Print(w io.Writer) {
	sides := []*Supply{&b.HTTP, &b.Bundle}
	if slices.ContainsFunc(append(sides, &b.There), func(s *Supply) bool { return len(s.Runs) == 0 }) {
		return
	}
	fmt.Fprintf(w, "\nbare image, %.0f MB to fetch (%d rounds; median, min–max, seconds)\n", float64(b.HTTP.bytes)/1e6, len(b.HTTP.Runs))
	for _, f := range figures {
		there := b.There.spread(func(p Provision) time.Duration { return f.of(p.Run) })
		fmt.Fprintf(w, "  %-15s %s %s", f.name, b.There.Name, there)
		for _, s := range sides {
			d := s.spread(func(p Provision) time.Duration { return f.of(p.Run) })
			fmt.Fprintf(w, "   %s %s   ratio %.2f", s.Name, d, d.Median.Seconds()/there.Median.Seconds())
		}
		fmt.Fprintln(w)
	}
	for _, f := range []struct {
		name string
		of   func(*Supply) fmt.Stringer
	}{
		{"fetching", func(s *Supply) fmt.Stringer { return s.spread(func(p Provision) time.Duration { return p.Fetching }) }},
		{"bytes alone", func(s *Supply) fmt.Stringer { return s.spread(func(p Provision) time.Duration { return p.Waiting }) }},
		{"of the run", func(s *Supply) fmt.Stringer { return s.shares() }},
	} {
		fmt.Fprintf(w, "  %-15s", f.name)
		for i, s := range sides {
			fmt.Fprintf(w, "%s%s %s", []string{" ", "   "}[i], s.Name, f.of(s))
		}
		fmt.Fprintln(w)
	}
}

func (s *Supply) spread(of func(Provision) time.Duration) Spread {
	var d []time.Duration
	for _, r := range s.Runs {
		d = append(d, of(r))
	}
	return summarise(d)
}

// percent is a Spread of parts of a whole.
type percent struct{ median, min, max float64 }

func (p percent) String() string {
	return fmt.Sprintf("%.0f %% (%.0f–%.0f)", 100*p.median, 100*p.min, 100*p.max)
}

// shares says which part of the runs waited for bytes alone.
func (s *Supply) shares() percent {
	var all []float64
	for _, r := range s.Runs {
		all = append(all, r.Share())
	}
	return percentOf(all)
}

func percentOf(all []float64) percent {
	slices.Sort(all)
	n := len(all)
	return percent{(all[(n-1)/2] + all[n/2]) / 2, all[0], all[n-1]}
}
