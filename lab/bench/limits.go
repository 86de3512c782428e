package bench

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/lab"
)

// Limit is a figure with the bound that it must keep.
type Limit struct {
	Name  string
	Bound string
	Spread
	// Size is in bytes where the figure is no duration.
	Size int64
}

// limits measures on a node of its own.
func limits(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	n, err := provisioned(ctx, l, "limits")
	if err != nil {
		return err
	}
	all, err := Limits(ctx, l, n, max(o.Pairs, 10))
	PrintLimits(w, all)
	return err
}

// Limits measures what has a fixed bound, on a node of the lab.
func Limits(ctx context.Context, l *lab.Lab, n *lab.Node, runs int) ([]Limit, error) {
	var out []Limit
	for _, m := range []struct{ name, bound, script string }{
		{"berth version", "12 ms", timed("berth version")},
		{"berth plan of a converged node", "40 ms", timed("berth plan -f " + nodeconfig)},
		{"provision-wait wakes after the sentinel", "50 ms", wake},
	} {
		var all []time.Duration
		for range runs {
			text, err := n.Output(ctx, "bash", "-c", m.script)
			if err != nil {
				return out, fmt.Errorf("%s: %w", m.name, err)
			}
			d, err := elapsed(text)
			if err != nil {
				return out, fmt.Errorf("%s: %w", m.name, err)
			}
			all = append(all, d)
		}
		out = append(out, Limit{Name: m.name, Bound: m.bound, Spread: summarise(all)})
	}
	info, err := n.Stat("/usr/local/bin/berth")
	if err != nil {
		return out, err
	}
	return append(out, Limit{Name: "stripped binary", Bound: "38 MB", Size: info.Size()}), nil
}

const nodeconfig = "/opt/azure/containers/aks-node-controller-config.json"

func timed(command string) string {
	return "s=$EPOCHREALTIME; " + command + " >/dev/null || exit; e=$EPOCHREALTIME; echo $s $e"
}

// wake hides the sentinel, waits for it and brings it back.
const wake = `f=/opt/azure/containers/provision.complete
mv $f $f.aside
aks-node-controller provision-wait >/dev/null & p=$!
until grep -q inotify /proc/$p/fdinfo/* 2>/dev/null; do :; done
s=$EPOCHREALTIME; mv $f.aside $f; wait $p || exit; e=$EPOCHREALTIME; echo $s $e`

// elapsed reads two times in seconds.
func elapsed(text string) (time.Duration, error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return 0, fmt.Errorf("no two times in %q", text)
	}
	var at [2]float64
	for i, f := range fields {
		var err error
		if at[i], err = strconv.ParseFloat(f, 64); err != nil {
			return 0, err
		}
	}
	return time.Duration((at[1] - at[0]) * float64(time.Second)), nil
}

// PrintLimits writes a line for each figure.
func PrintLimits(w io.Writer, all []Limit) {
	fmt.Fprintln(w, "\nlimits (median, min–max, seconds)")
	for _, l := range all {
		if l.Size > 0 {
			fmt.Fprintf(w, "  %-42s %.1f MB   bound %s\n", l.Name, float64(l.Size)/1e6, l.Bound)
			continue
		}
		fmt.Fprintf(w, "  %-42s %s   bound %s\n", l.Name, l.Spread, l.Bound)
	}
}

// provisioned is a node that CustomData made.
func provisioned(ctx context.Context, l *lab.Lab, name string) (*lab.Node, error) {
	cfg, err := l.NodeConfiguration()
	if err != nil {
		return nil, err
	}
	data, err := userData(cfg)
	if err != nil {
		return nil, err
	}
	n, err := l.AddNode(ctx, lab.NodeConfig{Name: name, UserData: data})
	if err != nil {
		return nil, err
	}
	if _, err = l.WaitNodeReady(ctx, n.Name); err != nil {
		return nil, err
	}
	return n, n.Run(ctx, "ln", "-sf", "/usr/local/bin/berth", "/usr/local/bin/aks-node-controller")
}
