// Command stagebench fetches artifacts the way a berth run does and says what that
// cost. It reads a JSON list of artifacts from its standard input.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/machine"
)

// order is an artifact to fetch: every member of an archive.
type order struct {
	Name, URL string
	Members   []string
}

// cost is what the run took.
type cost struct {
	Seconds float64
	// PeakBytes is the largest resident set.
	PeakBytes int64
	Cached    int
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: stagebench ROOT < artifacts.json")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string) error {
	var orders []order
	if err := json.NewDecoder(os.Stdin).Decode(&orders); err != nil {
		return err
	}
	start := time.Now()
	h, err := machine.New(root)
	if err != nil {
		return err
	}
	f := artifact.New(artifact.Options{})
	var all errgroup.Group
	cached := make([]bool, len(orders))
	for i, o := range orders {
		all.Go(func() (err error) { cached[i], err = fetch(ctx, h, f, o); return err })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	c := cost{Seconds: time.Since(start).Seconds()}
	if c.PeakBytes, err = peak(); err != nil {
		return err
	}
	for _, hit := range cached {
		if hit {
			c.Cached++
		}
	}
	return json.NewEncoder(os.Stdout).Encode(c)
}

// peak is the largest resident set since the program's start. getrusage(2) would
// count what the process was before exec, too.
func peak() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib int64
	_, err = fmt.Sscanf(rest, "%d kB", &kib)
	return kib << 10, err
}

func fetch(ctx context.Context, h host.Host, f *artifact.Fetcher, o order) (cached bool, err error) {
	a := &desired.Artifact{Name: o.Name, URLs: []string{o.URL}}
	for _, m := range o.Members {
		a.Files = append(a.Files, desired.ArtifactFile{Member: m, Path: filepath.Join("/opt", o.Name, m), Mode: 0o755})
	}
	if _, err := host.MkdirAll(h, filepath.Join("/opt", o.Name)); err != nil {
		return false, err
	}
	staged, err := f.Stage(ctx, h, a)
	if err != nil {
		return false, err
	}
	for _, file := range a.Files {
		if err := host.Commit(h, file.Path); err != nil {
			return false, err
		}
	}
	return staged.Cached, h.SyncDir(filepath.Join("/opt", o.Name))
}
