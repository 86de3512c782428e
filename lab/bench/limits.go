package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/build"
)

// Limit is a figure with the bound that it must keep.
type Limit struct {
	Name  string
	Bound string
	Spread
	// Size is in bytes where the figure is no duration.
	Size int64

	script string
}

// limits measures on a node of its own.
func limits(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	n, err := provisioned(ctx, l, "limits")
	if err != nil {
		return err
	}
	all, err := Limits(ctx, n, max(o.Pairs, 10))
	PrintLimits(w, all)
	return err
}

// Limits measures what has a fixed bound, on a node of the lab, beside a program that does
// nothing: what the machine takes to start any.
func Limits(ctx context.Context, n *lab.Node, runs int) ([]Limit, error) {
	if err := putNothing(ctx, n); err != nil {
		return nil, err
	}
	out := []Limit{
		{Name: "a Go program that does nothing", script: timed(nothingPath)},
		{Name: "berth version", Bound: "12 ms", script: timed("berth version")},
		{Name: "berth plan of a converged node", Bound: "40 ms", script: timed("berth plan -f " + nodeconfig)},
		{Name: "provision-wait wakes after the sentinel", Bound: "50 ms", script: wake},
	}
	all := make([][]time.Duration, len(out))
	for range runs {
		for i, m := range out {
			text, err := n.Output(ctx, "bash", "-c", m.script)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
			d, err := elapsed(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
			all[i] = append(all[i], d)
		}
	}
	for i := range out {
		out[i].Spread = summarise(all[i])
	}
	info, err := n.Stat("/usr/local/bin/berth")
	if err != nil {
		return out, err
	}
	return append(out, Limit{Name: "stripped binary", Bound: "32 MB", Size: info.Size()}), nil
}

const nothingPath = "/run/nothing"

// putNothing builds the program that does nothing for a node.
func putNothing(ctx context.Context, n *lab.Node) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "nothing")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := build.Nothing(ctx, filepath.Join(root, "lab"), dir); err != nil {
		return err
	}
	program, err := os.ReadFile(filepath.Join(dir, "nothing"))
	if err != nil {
		return err
	}
	return n.WriteFile(nothingPath, program, 0o755)
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
		line := fmt.Sprintf("  %-42s %s", l.Name, l.Spread)
		if l.Bound != "" {
			line += "   bound " + l.Bound
		}
		fmt.Fprintln(w, line)
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
