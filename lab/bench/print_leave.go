package bench

import (
	"fmt"
	"io"
	"time"
)

// leftovers are the counts in the order in which they are printed.
var leftovers = []string{"files", "netfilter rules", "sysctls", "slices", "cgroups", "mounts", "interfaces", "Node", "pods"}

// PrintLeave writes a line for each way, with the most that a run of it left.
func PrintLeave(w io.Writer, all []Departure) {
	for i, d := range all {
		if len(d.Runs) == 0 {
			continue
		}
		if i == 0 {
			fmt.Fprintf(w, "\nleave, a node with one pod (%d rounds; median, min–max, seconds; then the most that a run left)\n", len(d.Runs))
		}
		var took []time.Duration
		most := map[string]int{}
		for _, r := range d.Runs {
			took = append(took, r.Command)
			for name, n := range r.Counts {
				most[name] = max(most[name], n)
			}
		}
		fmt.Fprintf(w, "  %-25s %s ", d.Name, summarise(took))
		for _, name := range leftovers {
			fmt.Fprintf(w, "  %s %d", name, most[name])
		}
		fmt.Fprintln(w)
	}
}
