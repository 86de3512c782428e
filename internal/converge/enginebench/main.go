// Command enginebench applies 1,000 files below a root directory, once for each
// word it is given, and says what each time took. The words are the beginning of
// one file's content: another word is one change, the same word again is none.
// It is built beside an engine of another day, too, and uses little of both.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/machine"
)

// applied is one application; the counts are zero where nobody counted.
type applied struct {
	Seconds       float64
	Syncs, Writes int
}

func main() {
	debug.SetGCPercent(400) // as berth's commands do, see footprint.Brief
	root := flag.String("root", "", "the root `directory`, of a test")
	count := flag.Bool("count", false, "count effects; this takes time")
	flag.Parse()
	if *root == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: enginebench -root DIR [-count] WORD...")
		os.Exit(2)
	}
	if err := run(*count, *root, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(count bool, root string, words []string) error {
	h, err := machine.New(root)
	if err != nil {
		return err
	}
	var rec *effect.Recorder
	if count {
		rec = effect.Record(h)
		h = rec
	}
	e := converge.New(converge.Options{Host: h, Command: "enginebench", Offline: true})
	out := make([]applied, 0, len(words))
	for _, word := range words {
		st, err := files(word)
		if err != nil {
			return err
		}
		start := time.Now()
		if _, err := e.Apply(context.Background(), st); err != nil {
			return err
		}
		a := applied{Seconds: time.Since(start).Seconds()}
		if rec != nil {
			a.Syncs, a.Writes = tally(rec.Effects())
			rec.Forget()
		}
		out = append(out, a)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// tally counts syncs and all other effects.
func tally(effects []effect.Recorded) (syncs, writes int) {
	for _, e := range effects {
		if e.Op == "sync" {
			syncs++
		} else {
			writes++
		}
	}
	return syncs, writes
}

// files are 1,000 of 1 KB in 20 directories.
func files(word string) (*desired.State, error) {
	st := &desired.State{Owner: desired.OwnerOSC}
	for i := range 1000 {
		body := fmt.Sprintf("%04d %s", i, strings.Repeat("x", 1019))
		if i == 7 {
			body = word + body
		}
		path := fmt.Sprintf("/etc/many/%02d/f%04d", i%20, i)
		st.Add(&desired.File{Path: path, Content: desired.Text(body), Mode: 0o644, Life: desired.Managed})
	}
	return st, st.Seal()
}
