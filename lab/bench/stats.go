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
		fmt.Fprintf(w, "  %-15s kubeadm join %d of %d   berth %d of %d\n", "slow runs", slow(c.Kubeadm), len(c.Kubeadm), slow(c.Berth), len(c.Berth))
	}
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

func slow(runs []Run) int {
	n := 0
	for _, r := range runs {
		if r.Ready-r.Kubelet > Slow {
			n++
		}
	}
	return n
}
