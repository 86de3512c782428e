package reconcile

import (
	"path"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// refusing is a machine on whose disk there is no room for a file.
type refusing struct {
	*memory.Host
	full *bool
}

// Create implements host.FS.
func (r refusing) Create(p string) (host.File, error) {
	if *r.full && path.Dir(p) == "/etc" {
		return nil, syscall.ENOSPC
	}
	return r.Host.Create(p)
}

// repairFails edits a file that can't be repaired now.
func (b *bench) repairFails(p string, full *bool) {
	b.t.Helper()
	b.set(full, true)
	b.h.Overwrite(p, "edited")
	b.pass(2 * time.Second)
	if b.lastCondition() != "False RepairFailed" {
		b.t.Errorf("%q: %q", b.lastCondition(), b.told())
	}
}

// driftScenarios are what others do to the machine, and what is left to them.
var driftScenarios = map[string]func(b *bench){
	"an edit is taken back": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		b.wantFile("/etc/a", "one")
		if b.count("DriftRepaired") != 1 || b.count("OSCApplied") != 1 {
			b.t.Error(b.events)
		}
	},
	"a repair that fails is tried again": func(b *bench) {
		full := true
		b.engineHost = refusing{b.h, &full}
		b.start()
		b.set(&full, false)
		b.give("file /etc/a one")
		b.set(&full, true)
		b.h.Overwrite("/etc/a", "edited")
		b.pass(40 * time.Second)
		b.wantFile("/etc/a", "edited")
		if b.count("DriftStorm") != 0 || b.lastCondition() != "False RepairFailed" {
			b.t.Errorf("%q: %q", b.lastCondition(), b.told())
		}
		b.set(&full, false)
		b.pass(time.Minute)
		b.wantFile("/etc/a", "one")
	},
	"a repair that failed is told no more once another document is in force": func(b *bench) {
		full := false
		b.engineHost = refusing{b.h, &full}
		b.start()
		b.give("file /etc/a one", "file /etc/b one")
		b.repairFails("/etc/b", &full)
		b.set(&full, false)
		b.give("file /etc/a one")
		if b.wantApplied("file /etc/a one"); b.lastCondition() != "True Applied" {
			b.t.Errorf("%q: %q", b.lastCondition(), b.told())
		}
	},
	"a repair that failed after a start is told no more, whatever becomes of the document": func(b *bench) {
		full := false
		b.engineHost = refusing{b.h, &full}
		b.set(&b.turn, false)
		b.start()
		b.give("file /etc/a one")
		for _, comes := range []func(){
			func() {},
			func() { b.r.SeeSecret(serial("file /etc/a two")) },
		} {
			b.stop()
			b.start()
			comes()
			b.pass(time.Minute)
			b.repairFails("/etc/a", &full)
			b.set(&full, false)
			b.pass(time.Minute)
			if b.wantFile("/etc/a", "one"); b.lastCondition() != "True Applied" {
				b.t.Errorf("%q: %q", b.lastCondition(), b.told())
			}
		}
	},
	"a repair that failed after a start is told until all of the last good document is in force": func(b *bench) {
		full := false
		b.engineHost = refusing{b.h, &full}
		b.h.Behave("u.service", fails)
		b.start()
		b.give("file /etc/a one")
		b.give("file /etc/a two", "unit u.service /etc/a")
		b.stop()
		b.start()
		b.repairFails("/etc/a", &full)
		b.set(&full, false)
		b.h.Overwrite("/etc/a", "edited again")
		b.pass(2 * time.Second)
		if b.wantFile("/etc/a", "one"); b.lastCondition() != "False RepairFailed" {
			b.t.Errorf("%q: %q", b.lastCondition(), b.told())
		}
		b.pass(time.Minute)
		if b.lastCondition() != "True Applied" {
			b.t.Errorf("%q: %q", b.lastCondition(), b.told())
		}
	},
	"a repair that failed before a start is told no more": func(b *bench) {
		full := false
		b.engineHost = refusing{b.h, &full}
		b.start()
		b.give("file /etc/a one")
		for _, comes := range []func(){
			func() {}, // no API server answers but for the Node
			func() { b.set(&b.turn, false); b.r.SeeSecret(serial("file /etc/a two")) },
		} {
			b.repairFails("/etc/a", &full)
			b.stop()
			b.set(&full, false)
			b.start()
			comes()
			b.pass(time.Minute)
			if b.wantFile("/etc/a", "one"); b.lastCondition() != "True Applied" {
				b.t.Errorf("%q: %q", b.lastCondition(), b.told())
			}
		}
	},
	"a repair that failed is told no more, and what was taken back is, also after a start": func(b *bench) {
		full := false
		b.engineHost = refusing{b.h, &full}
		b.h.Behave("u.service", b.failsWithBad)
		bad := []string{"file /etc/a bad", "unit u.service /etc/a"}
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.pass(time.Minute)
		b.give(bad...)
		told := b.message()
		for _, comes := range []func(){func() {}, func() { b.give(bad...) }} {
			for _, before := range []bool{true, false} {
				if before {
					b.repairFails("/etc/a", &full)
				}
				b.stop()
				b.start()
				comes()
				if !before {
					b.repairFails("/etc/a", &full)
				}
				b.set(&full, false)
				b.pass(time.Minute)
				b.wantFile("/etc/a", "one")
				if b.lastCondition() != "False ApplyFailed" || b.message() != told || b.count("ApplyFailed") != 1 {
					b.t.Errorf("%q: %q", b.lastCondition(), b.told())
				}
			}
		}
	},
	"a deleted file comes back": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		_ = b.h.Remove("/etc/a")
		synctest.Wait()
		b.wantFile("/etc/a", "one")
	},
	"a mode is put right": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		_ = b.h.Chmod("/etc/a", 0o777)
		synctest.Wait()
		if info, _ := b.h.Lstat("/etc/a"); info.Mode.Perm() != 0o644 {
			b.t.Error(info.Mode)
		}
	},
	"a stopped unit starts": func(b *bench) {
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		if err := b.h.StopUnit(b.t.Context(), "u.service"); err != nil {
			b.t.Fatal(err)
		}
		synctest.Wait()
		if s, _ := b.h.Unit(b.t.Context(), "u.service"); s.ActiveState != "active" {
			b.t.Error(s.ActiveState)
		}
	},
	"a template, of which there is no unit to watch": func(b *bench) {
		document := []string{"file /etc/a one", "template w@.service", "template io.x.proxy@.service"}
		b.start()
		b.give(document...)
		b.wantApplied(document...)
		b.stop()
		b.start()
		b.h.Overwrite("/etc/systemd/system/io.x.proxy@.service", "edited")
		synctest.Wait()
		b.wantFile("/etc/systemd/system/io.x.proxy@.service", unitText)
		if b.count("DriftRepaired") != 1 {
			b.t.Error(b.events)
		}
	},
	"what can't be watched now is looked at, and watched later": func(b *bench) {
		b.set(&b.unwatched, true)
		b.start()
		b.give("file /etc/a one")
		b.wantApplied("file /etc/a one")
		b.h.Overwrite("/etc/a", "edited")
		b.pass(2 * time.Minute)
		b.wantFile("/etc/a", "one")
		b.stop()
		b.start()
		b.set(&b.unwatched, false)
		b.pass(2 * time.Minute)
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		b.wantFile("/etc/a", "one")
	},
	"drift that nobody heard of is found by the full look": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.h.MissEvents()
		b.h.Overwrite("/etc/a", "edited")
		b.pass(11 * time.Minute)
		b.wantFile("/etc/a", "one")
	},
	"policy report": func(b *bench) {
		b.options.Drift.Paths = []config.PathPolicy{{Path: "/etc/a", Policy: config.Report}}
		b.start()
		b.give("file /etc/a one", "file /etc/b one")
		b.h.Overwrite("/etc/a", "edited")
		b.h.Overwrite("/etc/b", "edited")
		b.pass(25 * time.Minute)
		b.wantFile("/etc/a", "edited")
		b.wantFile("/etc/b", "one")
		if b.count("DriftReported") != 1 {
			b.t.Error(b.events)
		}
		b.give("file /etc/a two", "file /etc/b one")
		b.wantFile("/etc/a", "two")
	},
	"the agent's own configuration is another's, too": func(b *bench) {
		b.own = []string{"/etc/a"}
		b.start()
		b.give("file /etc/a one", "file /etc/b one")
		b.h.Overwrite("/etc/a", "another name of the Secret")
		b.stop()
		b.start()
		b.pass(25 * time.Minute)
		b.wantFile("/etc/a", "another name of the Secret")
		if b.count("DriftReported") != 1 {
			b.t.Error(b.events)
		}
		_ = b.h.Remove("/etc/a")
		synctest.Wait()
		b.wantFile("/etc/a", "one")
		b.h.Overwrite("/etc/a", "edited")
		b.give("file /etc/a two")
		b.wantFile("/etc/a", "two")
	},
	"the agent's own configuration is ignored where it is said": func(b *bench) {
		b.own = []string{"/etc/a"}
		b.options.Drift.Paths = []config.PathPolicy{{Path: "/etc/a", Policy: config.Ignore}}
		b.start()
		b.give("file /etc/a one")
		b.h.Overwrite("/etc/a", "edited")
		b.pass(25 * time.Minute)
		b.wantFile("/etc/a", "edited")
		if b.count("DriftReported") != 0 {
			b.t.Error(b.events)
		}
	},
	"policy ignore": func(b *bench) {
		b.options.Drift.Paths = []config.PathPolicy{{Path: "/etc/a", Policy: config.Ignore}}
		b.start()
		b.give("file /etc/a one")
		b.h.Overwrite("/etc/a", "edited")
		b.pass(25 * time.Minute)
		b.wantFile("/etc/a", "edited")
		if len(b.events) != 1 {
			b.t.Error(b.events)
		}
	},
	"paused": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.paused = b.h.Now().Add(5 * time.Minute)
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		b.wantFile("/etc/a", "edited")
		if b.count("DriftReported") != 1 {
			b.t.Error(b.events)
		}
		b.pass(4 * time.Minute)
		b.wantFile("/etc/a", "edited")
		b.pass(2 * time.Minute)
		b.wantFile("/etc/a", "one")
	},
	"a pause that is ended early": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.paused = b.h.Now().Add(time.Hour)
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		b.paused = time.Time{}
		b.r.LookAgain()
		synctest.Wait()
		b.wantFile("/etc/a", "one")
	},
	"a document comes into a pause": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.paused = b.h.Now().Add(time.Hour)
		b.give("file /etc/a two")
		b.wantFile("/etc/a", "two")
	},
	"a fight that ends between two looks at everything": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.pass(15 * time.Minute) // five to the next one
		for range 6 {
			b.h.Overwrite("/etc/a", "theirs")
			synctest.Wait()
		}
		for range 11 {
			b.pass(time.Minute)
		}
		b.wantFile("/etc/a", "one")
	},
	"a fight with another writer ends": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		for range 10 {
			b.h.Overwrite("/etc/a", "theirs")
			synctest.Wait()
		}
		b.wantFile("/etc/a", "theirs")
		if b.count("DriftStorm") != 1 || b.count("DriftRepaired") != 5 {
			b.t.Error(b.events)
		}
		b.pass(9 * time.Minute)
		b.wantFile("/etc/a", "theirs")
		b.pass(2 * time.Minute)
		b.wantFile("/etc/a", "one")
	},
}
