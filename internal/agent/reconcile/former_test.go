package reconcile

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/internal/agent/config"
)

// formerMachine is one that the published agent has kept.
func formerMachine(b *bench, document string) {
	b.h.Put("/etc/a", "one", 0o644)
	b.h.Put("/etc/b", "one", 0o644)
	b.h.Put("/etc/systemd/system/u.service", unitText, 0o644)
	b.h.PutLink("/etc/systemd/system/u.service", "/etc/systemd/system/multi-user.target.wants/u.service", 0)
	if err := b.h.StartUnit(b.t.Context(), "u.service"); err != nil {
		b.t.Fatal(err)
	}
	b.h.Put(config.FormerDocument, document, 0o600)
	b.h.Put(config.FormerChanges, "operatingSystemConfigChecksum: x\n", 0o600)
}

var formerLines = []string{"file /etc/a one", "file /etc/b one", "unit u.service /etc/a"}

// TestFormer: what the published agent left is ours: the first document changes
// nothing of it, and what a later one does not name goes.
func TestFormer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		formerMachine(b, strings.Join(formerLines, "\n"))
		jobs := len(b.h.Jobs())
		b.start()
		defer b.stop()
		b.give(formerLines...)
		b.wantApplied(formerLines...)
		if got := b.h.Jobs()[jobs:]; len(got) > 0 {
			t.Error(got)
		}
		for _, p := range []string{config.FormerDocument, config.FormerChanges} {
			b.wantFile(p, "absent")
		}
		b.give("file /etc/a one")
		b.wantFile("/etc/a", "one")
		b.wantFile("/etc/b", "absent")
		b.wantFile("/etc/systemd/system/u.service", "absent")
		if s, _ := b.h.Unit(t.Context(), "u.service"); s.ActiveState == "active" {
			t.Error(s.ActiveState)
		}
	})
}

// TestFormerUnread: what the published agent left can't be told from what is others'
// without its own word: it stays, and that is said.
func TestFormerUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		formerMachine(b, "torn")
		b.start()
		defer b.stop()
		b.give("file /etc/a one")
		b.wantFile("/etc/b", "one")
		b.wantApplied("file /etc/a one")
		b.wantFile(config.FormerDocument, "absent")
		if b.count("NotInherited") != 1 {
			t.Error(b.events)
		}
	})
}

// TestFormerLater: what can't be inherited at the start is with the first document, and
// the former agent's word stays until it is.
func TestFormerLater(t *testing.T) {
	for name, c := range map[string]struct {
		failures int
		former   string
		b        string
	}{
		"with the document": {1, "absent", "absent"},
		"never":             {2, strings.Join(formerLines, "\n"), "one"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				formerMachine(b, strings.Join(formerLines, "\n"))
				b.formerFails = c.failures
				b.start()
				b.give("file /etc/a one")
				b.wantApplied("file /etc/a one")
				b.wantFile("/etc/b", c.b)
				b.wantFile(config.FormerDocument, c.former)
				if b.count("NotInherited") != 1 {
					t.Error(b.events)
				}
				b.stop()
				b.start()
				defer b.stop()
				b.give("file /etc/a two")
				b.wantFile("/etc/a", "two")
				b.wantFile(config.FormerDocument, c.former)
			})
		})
	}
}

// TestFormerIsOver: a state file that comes back when there is a document is not
// gone by.
func TestFormerIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		b.give("file /etc/a one")
		b.stop()
		b.h.Put("/etc/b", "theirs", 0o644)
		b.h.Put(config.FormerDocument, "file /etc/b theirs", 0o600)
		b.start()
		defer b.stop()
		b.give("file /etc/a two")
		b.wantFile("/etc/a", "two")
		b.wantFile("/etc/b", "theirs")
	})
}
