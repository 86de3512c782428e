package converge_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	realhost "github.com/berth-dev/berth/internal/host/machine"
)

// reading counts how often files under a directory, and the ledger, are read.
type reading struct {
	host.Host
	under         string
	files, ledger atomic.Int32
}

func (r *reading) ReadFile(p string) ([]byte, error) {
	switch {
	case p == ledgerFile:
		r.ledger.Add(1)
	case strings.HasPrefix(p, r.under):
		r.files.Add(1)
	}
	return r.Host.ReadFile(p)
}

// A process that stays reads what has not changed once, and notices an edit that
// kept size and time of modification; on a real file system.
func TestContentsAreReadOnce(t *testing.T) {
	root := t.TempDir()
	must(os.Mkdir(filepath.Join(root, "etc"), 0o755))
	inner, err := realhost.New(root)
	must(err)
	h := &reading{Host: inner, under: "/etc/"}
	e := converge.New(converge.Options{Host: h, Command: "test", Offline: true})
	st := sealed(t, managed("/etc/a", "one\n"), managed("/etc/b", "two\n"))
	apply := func() int {
		t.Helper()
		h.files.Store(0)
		h.ledger.Store(0)
		res, err := e.Apply(t.Context(), st)
		must(err)
		return len(res.Plan.Actions)
	}
	atRest := func() {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); h.files.Load()+h.ledger.Load() > 0; {
			if apply(); time.Now().After(end) {
				t.Fatalf("still reads %d files, the ledger %d times", h.files.Load(), h.ledger.Load())
			}
		}
	}
	apply()
	atRest()

	name := filepath.Join(root, "etc/b")
	was, err := os.Stat(name)
	must(err)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	must(err)
	_, err = f.WriteString("TWO\n")
	must(err)
	must(f.Close())
	must(os.Chtimes(name, was.ModTime(), was.ModTime()))
	if n := apply(); n != 1 {
		t.Errorf("%d actions after an edit that kept size and time", n)
	}
	if got, _ := os.ReadFile(name); string(got) != "two\n" {
		t.Errorf("holds %q", got)
	}
	apply()
	atRest()

	// Another process changes the ledger.
	other := converge.New(converge.Options{Host: inner, Command: "other", Offline: true})
	osc := &desired.State{Owner: desired.OwnerOSC}
	osc.Add(managed("/etc/c", "three\n"))
	must(osc.Seal())
	_, err = other.Apply(t.Context(), osc)
	must(err)
	st = sealed(t, managed("/etc/a", "one\n"), managed("/etc/b", "two\n"), managed("/etc/c", "others\n"))
	if _, err := e.Apply(t.Context(), st); err == nil || !strings.Contains(err.Error(), "/etc/c") {
		t.Errorf("the other owner's name: %v", err)
	}
}
