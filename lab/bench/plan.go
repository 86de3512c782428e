package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/berth-dev/berth/lab/internal/build"
)

// planBound is what translating and planning a whole document may take.
const planBound = "20 ms"

// Planning is one case of BenchmarkPlan: what the root is like below which a document with
// every field set is translated and planned, and what that took each time, on average.
type Planning struct {
	Root string
	// Took is by the clock, CPU what it had of the processors.
	Took, CPU time.Duration
	// Actions are those of the plan.
	Actions int
}

// plans measures in the tree's own benchmark, o.Pairs runs of it.
func plans(ctx context.Context, o Options, w io.Writer) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkPlan$", "-benchtime", "50x", "-count", strconv.Itoa(o.Pairs), "./internal/cli")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("benchmark of plans: %w\n%s", err, out)
	}
	all := parsePlans(string(out))
	if len(all) == 0 {
		return errors.New("the benchmark of plans says nothing")
	}
	printPlans(w, all)
	return nil
}

var planLine = regexp.MustCompile(`(?m)^BenchmarkPlan/(\w+?)(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op\s+([0-9.]+) actions\s+([0-9.]+) cpu-ms/op`)

func parsePlans(text string) []Planning {
	var all []Planning
	for _, m := range planLine.FindAllStringSubmatch(text, -1) {
		ns, err := strconv.ParseFloat(m[2], 64)
		actions, noActions := strconv.ParseFloat(m[3], 64)
		ms, noCPU := strconv.ParseFloat(m[4], 64)
		if errors.Join(err, noActions, noCPU) == nil {
			all = append(all, Planning{Root: m[1], Took: time.Duration(ns), CPU: time.Duration(ms * float64(time.Millisecond)), Actions: int(actions)})
		}
	}
	return all
}

func printPlans(w io.Writer, all []Planning) {
	fmt.Fprintln(w, "\ntranslate and plan a document with every field (median, min–max, seconds)")
	times, cpu, actions := map[string][]time.Duration{}, map[string][]time.Duration{}, map[string]int{}
	for _, p := range all {
		times[p.Root], cpu[p.Root] = append(times[p.Root], p.Took), append(cpu[p.Root], p.CPU)
		actions[p.Root] = p.Actions
	}
	for _, root := range []string{"empty", "applied"} {
		if len(times[root]) > 0 {
			fmt.Fprintf(w, "  %-10s %s, CPU %s, %d actions   bound %s\n", root, summarise(times[root]), summarise(cpu[root]), actions[root], planBound)
		}
	}
}
