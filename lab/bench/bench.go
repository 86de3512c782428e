// Package bench measures berth against kubeadm join and reset on the same machines
// and the same control plane, in pairs in turn, its downloads against the shell's,
// a bare image against one with all programs, its engine against one of another
// day, and what has a fixed limit.
package bench

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/berth-dev/berth/lab"
)

// Options say what to measure.
type Options struct {
	// Pairs is the number of runs of each side in each case; 10 if zero.
	Pairs int
	// Only names the parts to run; all if empty. See Parts.
	Only []string
	// Agents are the sizes of fleets; 100 and 300 if empty.
	Agents []int
	// AgentRest is how long the agent is measured at rest after the large document; 1 min
	// if zero.
	AgentRest time.Duration
	Log       io.Writer
}

// Case is one state of the machine at the start of the measured command.
type Case struct {
	Name string
	// Containerd runs already.
	Containerd bool
	// Cold: the page cache was dropped.
	Cold bool
}

// Cases are the measured states.
var Cases = []Case{
	{Name: "containerd runs, warm", Containerd: true},
	{Name: "containerd starts, warm"},
	{Name: "containerd starts, cold", Cold: true},
}

// Run is one measured join; durations count from the start of the command.
type Run struct {
	Command    time.Duration // to its exit
	Kubelet    time.Duration // to the start of kubelet's process
	Registered time.Duration
	Ready      time.Duration
}

// Comparison is a case with its runs.
type Comparison struct {
	Case    Case
	Kubeadm []Run
	Berth   []Run
}

// joins compares with kubeadm join and prints.
func joins(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	all, err := Compare(ctx, l, o)
	Print(w, all)
	return err
}

// Compare runs the pairs of every case.
func Compare(ctx context.Context, l *lab.Lab, o Options) ([]Comparison, error) {
	if err := l.EnableKubeadm(ctx); err != nil {
		return nil, err
	}
	b := &bench{lab: l, log: o.Log}
	var out []Comparison
	for _, c := range Cases {
		cmp := Comparison{Case: c}
		for i := range o.Pairs {
			if err := b.pair(ctx, i, &cmp); err != nil {
				return out, fmt.Errorf("%s, pair %d: %w", c.Name, i+1, err)
			}
		}
		out = append(out, cmp)
	}
	return out, nil
}

// pair measures both sides, in alternating order.
func (b *bench) pair(ctx context.Context, i int, c *Comparison) error {
	sides := []func() error{
		func() error { return b.measure(ctx, c.Case, kubeadm, &c.Kubeadm) },
		func() error { return b.measure(ctx, c.Case, berth, &c.Berth) },
	}
	if i%2 == 1 {
		sides[0], sides[1] = sides[1], sides[0]
	}
	for _, side := range sides {
		if err := side(); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.log, "%s, pair %d: kubeadm Ready %.2f s, berth Ready %.2f s\n", c.Case.Name, i+1,
		c.Kubeadm[i].Ready.Seconds(), c.Berth[i].Ready.Seconds())
	return nil
}
