package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/berth-dev/berth/lab/internal/build"
	"github.com/berth-dev/berth/lab/internal/hostdeps"
	"github.com/berth-dev/berth/lab/internal/placement"
	"github.com/berth-dev/berth/lab/internal/progress"
)

// engineBefore is the commit whose engine this one is measured beside: the last
// one before it was rewritten.
const engineBefore = "11c52bf"

// engineProgram is the source of what both engines are driven with.
const engineProgram = "internal/converge/enginebench"

// Applied is one application of the 1,000 files, by the program's own word.
type Applied struct {
	Seconds       float64
	Syncs, Writes int
}

func (a Applied) took() time.Duration { return time.Duration(a.Seconds * float64(time.Second)) }

// What the files are like before an application.
const (
	unchanged = iota
	oneChanged
	oneChangedCold
	allForeign
	allNew
)

// engineCases are printed in this order, with their bounds in seconds.
var engineCases = [...]struct{ name, bound string }{
	unchanged:      {"nothing to do", "0.012, no write"},
	oneChanged:     {"one changed", "0.010, 4 syncs"},
	oneChangedCold: {"one changed, new process", "0.025"},
	allForeign:     {"all replace foreign ones", "0.400"},
	allNew:         {"all new", "0.230"},
}

// Engine is what one engine took. The counts are of applications that were not
// timed.
type Engine struct {
	Name   string
	Times  [len(engineCases)][]time.Duration
	Counts [len(engineCases)]Applied

	program string
}

// Engines measures the engine below a root directory, in turn with the one of
// engineBefore where this clone has it.
func Engines(ctx context.Context, o Options, w io.Writer) error {
	if err := hostdeps.Bench(ctx, &progress.Log{W: o.Log}); err != nil {
		return err
	}
	// Not /tmp, which may be memory.
	dir, err := os.MkdirTemp("/var/tmp", "berth-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	engines, err := buildEngines(ctx, dir, w)
	if err != nil {
		return err
	}
	if err := placement.Spread(dir); err != nil {
		return err
	}
	root := rootsIn(dir)
	for _, e := range engines {
		if err := e.count(ctx, root); err != nil {
			return fmt.Errorf("engine %s: %w", e.Name, err)
		}
	}
	for i := range o.Pairs {
		for j := range engines {
			e := engines[(i+j)%len(engines)]
			if err := e.round(ctx, root); err != nil {
				return fmt.Errorf("engine %s, round %d: %w", e.Name, i+1, err)
			}
		}
	}
	PrintEngines(w, engines)
	return nil
}

// rootsIn says where the next root goes. None is removed before the end, see
// placement.Spread.
func rootsIn(dir string) func() string {
	made := 0
	return func() string {
		made++
		return filepath.Join(dir, fmt.Sprintf("root-%d", made))
	}
}

func buildEngines(ctx context.Context, dir string, w io.Writer) ([]*Engine, error) {
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	now, err := buildEngine(ctx, "now", root, dir)
	if err != nil {
		return nil, err
	}
	old := filepath.Join(dir, "tree")
	if err := extract(ctx, root, old); err != nil {
		fmt.Fprintf(w, "\nno engine of %s to compare with: %v\n", engineBefore, err)
		return []*Engine{now}, nil
	}
	if err := os.CopyFS(filepath.Join(old, engineProgram), os.DirFS(filepath.Join(root, engineProgram))); err != nil {
		return nil, err
	}
	before, err := buildEngine(ctx, engineBefore, old, dir)
	return []*Engine{before, now}, err
}

// extract writes the tree of engineBefore to dir. A clone without its history
// has none.
func extract(ctx context.Context, root, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "bash", "-c", `set -o pipefail; git -C "$1" archive "$2" | tar -x -C "$3"`, "extract", root, engineBefore, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

func buildEngine(ctx context.Context, name, tree, dir string) (*Engine, error) {
	e := &Engine{Name: name, program: filepath.Join(dir, "engine-"+name)}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", e.program, "./"+engineProgram)
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the engine of %s: %w\n%s", name, err, out)
	}
	return e, nil
}

// words are the beginnings of the file that changes: applications in one
// process, of which the first finds nothing and the next three all in order.
var words = []string{"a", "a", "a", "a", "b", "c", "d"}

// round times every case.
func (e *Engine) round(ctx context.Context, next func() string) error {
	root := next()
	if err := newRoot(root, false); err != nil {
		return err
	}
	all, _, err := e.timed(ctx, root, words...)
	if err != nil {
		return err
	}
	for i, a := range all {
		e.time(caseOf(i), a.took())
	}
	for _, word := range []string{"e", "f", "g"} {
		_, took, err := e.timed(ctx, root, word)
		if err != nil {
			return err
		}
		e.time(oneChangedCold, took)
	}
	root = next()
	if err := newRoot(root, true); err != nil {
		return err
	}
	if all, _, err = e.timed(ctx, root, words[0]); err != nil {
		return err
	}
	e.time(allForeign, all[0].took())
	return nil
}

// caseOf is what the application of words[i] finds.
func caseOf(i int) int {
	switch {
	case i == 0:
		return allNew
	case words[i] == words[i-1]:
		return unchanged
	default:
		return oneChanged
	}
}

func (e *Engine) time(c int, d time.Duration) { e.Times[c] = append(e.Times[c], d) }

// count says what the applications do. It is not timed: counting takes time.
func (e *Engine) count(ctx context.Context, next func() string) error {
	root := next()
	if err := newRoot(root, false); err != nil {
		return err
	}
	all, err := e.apply(ctx, root, append([]string{"-count"}, words...)...)
	if err != nil {
		return err
	}
	for i, a := range all {
		e.Counts[caseOf(i)] = a
	}
	e.Counts[oneChangedCold] = e.Counts[oneChanged]
	root = next()
	if err := newRoot(root, true); err != nil {
		return err
	}
	if all, err = e.apply(ctx, root, "-count", words[0]); err != nil {
		return err
	}
	e.Counts[allForeign] = all[0]
	return nil
}

// timed runs the program on a disk at rest.
func (e *Engine) timed(ctx context.Context, root string, args ...string) ([]Applied, time.Duration, error) {
	syscall.Sync()
	start := time.Now()
	all, err := e.apply(ctx, root, args...)
	return all, time.Since(start), err
}

func (e *Engine) apply(ctx context.Context, root string, args ...string) ([]Applied, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, e.program, append([]string{"-root", root}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("apply: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	var all []Applied
	return all, json.Unmarshal(out.Bytes(), &all)
}

// newRoot makes an empty root, or one in which every file is somebody's.
func newRoot(root string, foreign bool) error {
	var err error
	for _, d := range []string{"etc", "run", "var/lib"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	for i := 0; foreign && i < 1000; i++ {
		path := filepath.Join(root, fmt.Sprintf("etc/many/%02d/f%04d", i%20, i))
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, fmt.Appendf(nil, "foreign %d", i), 0o644))
	}
	return err
}

// PrintEngines writes a line for each case; ratios are to the first engine.
func PrintEngines(w io.Writer, all []*Engine) {
	fmt.Fprintf(w, "\n1,000 files of 1 KB below a root (%d rounds; median, min–max, seconds)\n", len(all[0].Times[allNew]))
	for c, of := range engineCases {
		fmt.Fprintf(w, "  %-24s", of.name)
		first := summarise(all[0].Times[c])
		for i, e := range all {
			s := summarise(e.Times[c])
			fmt.Fprintf(w, " %s %s, %d syncs, %d writes  ", e.Name, s, e.Counts[c].Syncs, e.Counts[c].Writes)
			if i > 0 {
				fmt.Fprintf(w, " ratio %.2f  ", s.Median.Seconds()/first.Median.Seconds())
			}
		}
		fmt.Fprintf(w, " bound %s\n", of.bound)
	}
}
