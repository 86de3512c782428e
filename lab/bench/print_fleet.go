package bench

import (
	"fmt"
	"io"
)

// PrintFleets writes a line for each figure of each size.
func PrintFleets(w io.Writer, all []Fleet) {
	fmt.Fprintln(w, "\nfleet: agents in one process, their machines in memory")
	for _, f := range all {
		n := float64(f.Agents)
		fmt.Fprintf(w, "  %d agents, started one after another in %.1f s; %d watches\n", f.Agents, f.Start.Seconds(), f.Watches)
		fmt.Fprintf(w, "    at rest: %.2f requests/s (%s in %.0f s)\n", float64(f.Rest.Requests)/f.Rest.Window.Seconds(), f.Rest, f.Rest.Window.Seconds())
		for _, r := range []struct {
			window string
			of     Rollout
		}{{"0 s", f.AtOnce}, {fmt.Sprintf("%.0f s", fleetWindow.Seconds()), f.Slow}} {
			fmt.Fprintf(w, "    a new document, jitter window %s: half after %.2f s, all after %.2f s; %.1f requests each (%s)\n",
				r.window, r.of.Half.Seconds(), r.of.All.Seconds(), float64(r.of.Traffic.Requests)/n, r.of.Traffic)
		}
	}
}
