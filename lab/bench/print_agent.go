package bench

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// PrintAgent writes what is known of the agent.
func PrintAgent(w io.Writer, f *AgentFigures) {
	fmt.Fprintf(w, "\nagent: from the Secret's update (median, min–max, seconds); the large document is %.2f MB\n", float64(f.LargeSize)/1e6)
	for _, c := range []struct {
		name, bound string
		all         []Change
	}{
		{"small change", "durable 0.010, said 0.040", f.Small},
		{"with a unit's restart", "said 0.060", f.Restart},
		{"the same, on trial", "none", f.Tried},
		{"large, from nothing", "durable 0.800, 3 MB written", f.Large},
		{"large, removal", "durable 0.800", f.Removal},
	} {
		fmt.Fprintf(w, "  %-22s heard %s   in place %s   durable %s   in force %s   said %s   written %.2f MB   bound %s\n", c.name,
			spreadOf(c.all, func(c Change) time.Duration { return c.Heard }),
			spreadOf(c.all, func(c Change) time.Duration { return c.InPlace }), spreadOf(c.all, func(c Change) time.Duration { return c.Durable }),
			spreadOf(c.all, func(c Change) time.Duration { return c.InForce }),
			spreadOf(c.all, func(c Change) time.Duration { return c.Said }), float64(mostWritten(c.all))/1e6, c.bound)
	}
	fmt.Fprintf(w, "  %-22s %s   bound 0.050\n", "large, no change", summarise(slices.Clone(f.NoChange)))
	printUsage(w, "idle", "30 MB", f.Idle, f.IdleCPU, f.IdleFor)
	printUsage(w, "after the large one", "34 MB, peak 45 MB", f.After, f.AfterCPU, f.AfterFor)
	if f.Traffic.Window > 0 {
		fmt.Fprintf(w, "  at rest: %.1f API writes in a minute   bound 2   (%s); %d watches\n", f.Traffic.perMinute(f.Traffic.Writes), f.Traffic, f.Watches)
	}
}

func printUsage(w io.Writer, name, bound string, u usage, cpu, of time.Duration) {
	if of == 0 {
		return
	}
	mb := func(kib int64) float64 { return float64(kib) * 1024 / 1e6 }
	fmt.Fprintf(w, "  %-22s RSS %.1f MB (%.1f anonymous), peak %.1f MB   bound %s   CPU %.3f %% of a core in %.0f s   bound 0.03 %%\n",
		name, mb(u.RSS), mb(u.Anon), mb(u.Peak), bound, 100*cpu.Seconds()/of.Seconds(), of.Seconds())
}

func mostWritten(all []Change) int64 {
	var most int64
	for _, c := range all {
		most = max(most, c.Written)
	}
	return most
}

func spreadOf[T any](all []T, of func(T) time.Duration) Spread {
	var d []time.Duration
	for _, c := range all {
		d = append(d, of(c))
	}
	return summarise(d)
}
