package bench

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Slow is where the slow cluster begins, from kubelet's start to Ready: a run
// that lost kubelet's bootstrap race is never faster.
const Slow = 1100 * time.Millisecond

type figure struct {
	name string
	of   func(Run) time.Duration
}

var figures = []figure{
	{"command", func(r Run) time.Duration { return r.Command }},
	{"kubelet starts", func(r Run) time.Duration { return r.Kubelet }},
	{"registered", func(r Run) time.Duration { return r.Registered }},
	{"Ready", func(r Run) time.Duration { return r.Ready }},
}

// Print writes a table for each comparison.
func Print(w io.Writer, all []Comparison) {
	for _, c := range all {
		fmt.Fprintf(w, "\n%s (%d pairs; median, min–max, seconds)\n", c.Case.Name, len(c.Berth))
		for _, f := range figures {
			k, b := spread(c.Kubeadm, f.of), spread(c.Berth, f.of)
			fmt.Fprintf(w, "  %-15s kubeadm join %s   berth %s   ratio %.2f\n", f.name, k, b, b.Median.Seconds()/k.Median.Seconds())
		}
		printFast(w, c)
		fmt.Fprintf(w, "  %-15s kubeadm join %d of %d   berth %d of %d\n", "slow runs",
			len(c.Kubeadm)-len(fast(c.Kubeadm)), len(c.Kubeadm), len(c.Berth)-len(fast(c.Berth)), len(c.Berth))
	}
}

// printFast compares all runs of berth with those alone in which kubeadm join
// did not lose the race: how often it does is luck, and decides the median.
func printFast(w io.Writer, c Comparison) {
	runs := fast(c.Kubeadm)
	if len(runs) == 0 {
		fmt.Fprintf(w, "  %-15s kubeadm join has no fast run\n", "Ready, fast")
		return
	}
	ready := func(r Run) time.Duration { return r.Ready }
	k, b := spread(runs, ready), spread(c.Berth, ready)
	fmt.Fprintf(w, "  %-15s kubeadm join %s in %d fast runs   berth %s in all   ratio %.2f\n", "Ready, fast", k, len(runs), b, b.Median.Seconds()/k.Median.Seconds())
}

// Spread is the median of some runs and their extremes.
type Spread struct{ Median, Min, Max time.Duration }

func (s Spread) String() string {
	return fmt.Sprintf("%.3f (%.3f–%.3f)", s.Median.Seconds(), s.Min.Seconds(), s.Max.Seconds())
}

func spread(runs []Run, of func(Run) time.Duration) Spread {
	var d []time.Duration
	for _, r := range runs {
		d = append(d, of(r))
	}
	return summarise(d)
}

func summarise(d []time.Duration) Spread {
	if len(d) == 0 {
		return Spread{}
	}
	slices.Sort(d)
	return Spread{(d[(len(d)-1)/2] + d[len(d)/2]) / 2, d[0], d[len(d)-1]}
}

// fast are the runs that did not lose kubelet's bootstrap race.
func fast(runs []Run) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Ready-r.Kubelet > Slow })
}
