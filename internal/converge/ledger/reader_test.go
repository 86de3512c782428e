package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// beside is a machine on which runs go on while the ledger is read.
type beside struct {
	host.Host
	runs func()
}

// ReadFile implements host.FS.
func (b beside) ReadFile(p string) ([]byte, error) {
	data, err := b.Host.ReadFile(p)
	if p == Path {
		b.runs()
	}
	return data, err
}

// TestReadBesideRuns: plan takes no lock. A run that begins and ends between its two reads
// is no run that was cut off, nor is the one before it.
func TestReadBesideRuns(t *testing.T) {
	for _, runs := range []int{1, 2, 5} {
		h := memory.New()
		l := &Ledger{Entries: map[string]Entry{}}
		next := func(id string) {
			t.Helper()
			run := &Run{ID: id, Owner: desired.OwnerAKS, Definitions: []string{"/etc/systemd/system/a.service"}}
			if err := l.Begin(h, run); err != nil {
				t.Fatal(err)
			}
			if err := l.Done(h, run, nil); err != nil {
				t.Fatal(err)
			}
		}
		next("0")
		left := runs
		got, err := new(Reader).Load(beside{h, func() {
			if left--; left >= 0 {
				next(string(rune('a' + left)))
			}
		}})
		if err != nil || got.Owed != nil {
			t.Errorf("%d runs meanwhile: %+v is owed, %v", runs, got.Owed, err)
		}
	}
}

// A process that stays knows what it wrote, and not what it made of that afterwards;
// what somebody else wrote, in place and at the same moment, too, it reads.
func TestReaderOfItsOwnLedger(t *testing.T) {
	h := memory.New()
	var r Reader
	entry := func(sum string) Entry {
		return Entry{Owners: map[desired.Owner]string{desired.OwnerAKS: ""}, Applied: Standing{Type: File, Sum: sum}}
	}
	load := func() *Ledger {
		t.Helper()
		l, err := r.Load(h)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := load()
	run := &Run{ID: "1", Owner: desired.OwnerAKS, Claims: map[string]Claim{"/etc/a": {Entry: entry("aa")}}}
	if err := l.Begin(h, run); err != nil {
		t.Fatal(err)
	}
	if err := l.Done(h, run, nil); err != nil {
		t.Fatal(err)
	}
	l = load()
	if l.Entries["/etc/a"].Applied.Sum != "aa" {
		t.Fatalf("entries %v", l.Entries)
	}
	second := &Run{ID: "2", Owner: desired.OwnerAKS, Claims: map[string]Claim{"/etc/b": {Entry: entry("bb")}}}
	if err := l.Begin(h, second); err != nil {
		t.Fatal(err)
	}
	second.Claims["/etc/c"], l.Entries["/etc/d"] = Claim{Entry: entry("cc")}, entry("dd")
	if err := l.Done(h, second, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/etc/c", "/etc/d"} {
		if load().Ours(name) {
			t.Errorf("%s was never written", name)
		}
	}
	text, err := h.ReadFile(Path)
	if err != nil {
		t.Fatal(err)
	}
	h.Overwrite(Path, strings.Replace(string(text), `"bb"`, `"xx"`, 1))
	if got := load().Entries["/etc/b"].Applied.Sum; got != "xx" {
		t.Errorf("an edit does not show: %q", got)
	}
	h.Advance(time.Minute)
	h.Overwrite(Path, "{")
	if got := load(); len(got.Entries) > 0 {
		t.Errorf("of a torn one: %v", got.Entries)
	}
}
