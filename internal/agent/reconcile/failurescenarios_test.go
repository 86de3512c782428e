package reconcile

import (
	"context"
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// failsWithBad is a unit that does not start when /etc/a is "bad".
func (b *bench) failsWithBad(memory.Start) memory.Outcome {
	if b.content("/etc/a") == "bad" {
		return memory.Outcome{Status: 1}
	}
	return memory.Outcome{}
}

// failureScenarios are documents and machines that fail.
var failureScenarios = map[string]func(b *bench){
	"a refused document changes nothing and is not asked for again": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.give("rubbish")
		opened := b.opened
		b.pass(time.Hour)
		b.wantFile("/etc/a", "one")
		b.wantApplied("file /etc/a one")
		if b.opened != opened || b.lastCondition() != "False ApplyFailed" || b.count("ApplyFailed") != 1 {
			b.t.Error(b.opened, opened, b.conditions, b.events)
		}
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		b.wantFile("/etc/a", "one")
		b.give("file /etc/a two")
		b.wantFile("/etc/a", "two")
		if b.lastCondition() != "True Applied" {
			b.t.Error(b.conditions)
		}
	},
	"a refused document is withdrawn": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.give("rubbish")
		released := b.released
		b.give("file /etc/a one")
		if b.lastCondition() != "True Applied" {
			b.t.Error(b.conditions)
		}
		if b.released == released {
			b.t.Error("the turn of the withdrawn document is not given on")
		}
	},
	"a unit that fails at first is tried again": func(b *bench) {
		fails := true
		b.h.Behave("u.service", func(memory.Start) memory.Outcome {
			if fails {
				return memory.Outcome{Status: 1}
			}
			return memory.Outcome{}
		})
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		if b.node.Annotations[AppliedAnnotation] != "" || b.lastCondition() != "False ApplyFailed" {
			b.t.Error(b.node.Annotations, b.conditions)
		}
		fails = false
		b.pass(10 * time.Minute)
		b.wantApplied("file /etc/a one", "unit u.service /etc/a")
		if b.lastCondition() != "True Applied" {
			b.t.Error(b.conditions)
		}
	},
	"a unit that hangs keeps nothing else from being done": func(b *bench) {
		b.h.Behave("u.service", func(memory.Start) memory.Outcome { return memory.Outcome{Hang: true} })
		b.ends = true
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a", "unit v.service /etc/a", "agent two")
		if st := b.h.Units()["v.service"]; st.ActiveState != "active" {
			b.t.Errorf("v.service is %s", st.ActiveState)
		}
		b.pass(4 * time.Minute)
		if b.lastCondition() != "False ApplyFailed" || b.placed != 1 {
			b.t.Errorf("%q, %d agents in place: %q", b.lastCondition(), b.placed, b.told())
		}
		b.h.Overwrite("/etc/a", "edited")
		b.pass(4 * time.Minute)
		b.wantFile("/etc/a", "one")
		b.r.SeeSecret(secretOf("file /etc/a two", "unit v.service /etc/a"))
		b.pass(4 * time.Minute)
		b.wantApplied("file /etc/a two", "unit v.service /etc/a")
	},
	"a unit that starts slowly on trial is not taken back for that": func(b *bench) {
		b.h.Behave("u.service", func(memory.Start) memory.Outcome { return memory.Outcome{Hang: b.content("/etc/a") == "slow"} })
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.pass(time.Minute)
		b.r.SeeSecret(secretOf("file /etc/a slow", "unit u.service /etc/a"))
		b.pass(4 * time.Minute)
		b.wantFile("/etc/a", "slow")
		if b.count("ApplyFailed") != 0 || !b.isOnTrial() {
			b.t.Error(b.told())
		}
	},
	"a new unit that fails takes nothing back of what holds, and keeps no agent from coming": func(b *bench) {
		b.h.Behave("u.service", fails)
		b.ends = true
		b.start()
		b.give("file /etc/a one", "unit v.service /etc/a")
		b.pass(time.Minute)
		b.give("file /etc/a two", "unit v.service /etc/a", "unit u.service /etc/a", "agent two")
		b.pass(10 * time.Minute)
		b.wantFile("/etc/a", "two")
		if b.isOnTrial() || b.placed == 0 || b.lastCondition() != "False ApplyFailed" || b.restarts("v.service") != 2 {
			b.t.Error(b.isOnTrial(), b.placed, b.restarts("v.service"), b.told())
		}
		b.give("file /etc/a two", "unit v.service /etc/a")
		b.wantApplied("file /etc/a two", "unit v.service /etc/a")
	},
	"a unit that fails keeps no other from running": func(b *bench) {
		b.h.Behave("u.service", fails)
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a", "unit v.service /etc/a", "unit w.service /etc/a")
		for _, name := range []string{"v.service", "w.service"} {
			if st := b.h.Units()[name]; st.ActiveState != "active" {
				b.t.Errorf("%s is %s", name, st.ActiveState)
			}
		}
		if b.node.Annotations[AppliedAnnotation] != "" || b.lastCondition() != "False ApplyFailed" {
			b.t.Error(b.node.Annotations, b.conditions)
		}
		b.pass(10 * time.Minute)
		if n := b.restarts("v.service"); n != 1 {
			b.t.Errorf("%d starts of what runs", n)
		}
		if told := b.told(); strings.Contains(fmt.Sprint(told), "systemd holds another definition") {
			b.t.Error("systemd has not read what the document brought:", told)
		}
	},
	"what a unit that fails leaves undone comes about by itself": func(b *bench) {
		b.h.Behave("u.service", fails)
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a", "unit v.service /etc/a")
		b.h.Overwrite("/etc/a", "edited")
		b.pass(10 * time.Minute)
		b.wantFile("/etc/a", "one")
		b.give("file /etc/a one", "unit v.service /etc/a")
		b.wantApplied("file /etc/a one", "unit v.service /etc/a")
		if b.content("/etc/systemd/system/u.service") != "absent" || b.lastCondition() != "True Applied" {
			b.t.Error("the unit is left, or it is not told that it is gone", b.conditions)
		}
	},
	"units whose files somebody has removed are no error": func(b *bench) {
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a", "unit v.service /etc/a")
		b.stop()
		for _, p := range []string{"/etc/systemd/system/u.service", "/etc/systemd/system/v.service"} {
			if err := b.h.Remove(p); err != nil {
				b.t.Fatal(err)
			}
		}
		if err := b.h.StopUnit(b.t.Context(), "u.service"); err != nil {
			b.t.Fatal(err)
		}
		b.start()
		b.give("file /etc/a one")
		b.wantApplied("file /etc/a one")
		if st := b.h.Units()["v.service"]; st.ActiveState == "active" || b.lastCondition() != "True Applied" {
			b.t.Error(st, b.conditions)
		}
	},
	"a change that breaks what ran is taken back and not tried again": func(b *bench) {
		b.h.Behave("u.service", b.failsWithBad)
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.pass(time.Minute)
		b.give("file /etc/a bad", "unit u.service /etc/a")
		b.wantFile("/etc/a", "one")
		tried := b.restarts("u.service")
		b.pass(time.Hour)
		b.stop()
		b.start()
		b.give("file /etc/a bad", "unit u.service /etc/a")
		b.pass(time.Hour)
		if n := b.restarts("u.service"); n != tried {
			b.t.Errorf("%d starts more", n-tried)
		}
		b.wantApplied("file /etc/a one", "unit u.service /etc/a")
		b.give("file /etc/a two", "unit u.service /etc/a")
		b.wantFile("/etc/a", "two")
		b.wantApplied("file /etc/a two", "unit u.service /etc/a")
	},
	"a change that somebody's file broke stays, and no repair takes it back": func(b *bench) {
		rest := []string{"file /etc/b one", "unit u.service /etc/b", "unit v.service /etc/a"}
		b.start()
		b.give(append(rest, "file /etc/a one")...)
		b.pass(time.Minute)
		b.h.Put("/etc/systemd/system/u.service.d/99-theirs.conf", "[Service]\nEnvironment=X=1\n", 0o644)
		b.h.Behave("u.service", fails)
		before := b.restarts("v.service")
		b.r.SeeSecret(secretOf(append(rest, "file /etc/a two")...))
		b.pass(time.Minute)
		b.wantFile("/etc/a", "two")
		if n := b.restarts("v.service") - before; n != 1 || b.isOnTrial() || b.lastCondition() != "False ApplyFailed" {
			b.t.Errorf("%d restarts: %q", n, b.told())
		}
		b.h.Overwrite("/etc/a", "edited")
		b.pass(time.Minute)
		b.wantFile("/etc/a", "two")
		b.h.Behave("u.service", nil)
		b.pass(10 * time.Minute)
		if b.wantApplied(append(rest, "file /etc/a two")...); b.lastCondition() != "True Applied" {
			b.t.Error(b.conditions)
		}
	},
	"a change that could not be taken back is taken back later": func(b *bench) {
		full := false
		b.engineHost = refusing{b.h, &full}
		b.h.Behave("u.service", func(s memory.Start) memory.Outcome {
			b.set(&full, b.content("/etc/a") == "bad")
			return b.failsWithBad(s)
		})
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.pass(time.Minute)
		b.r.SeeSecret(secretOf("file /etc/a bad", "unit u.service /etc/a"))
		synctest.Wait()
		if b.wantFile("/etc/a", "bad"); !strings.Contains(fmt.Sprint(b.told()), "the way back to the last good configuration failed, too") {
			b.t.Error(b.told())
		}
		b.set(&full, false)
		b.h.Behave("u.service", b.failsWithBad)
		b.pass(10 * time.Minute)
		b.wantFile("/etc/a", "one")
		if b.wantApplied("file /etc/a one", "unit u.service /etc/a"); b.isOnTrial() {
			b.t.Error("still on trial", b.told())
		}
	},
	"a document that was taken back is tried again when it comes again after another": func(b *bench) {
		b.h.Behave("u.service", b.failsWithBad)
		b.start()
		good, bad := []string{"file /etc/a one", "unit u.service /etc/a"}, []string{"file /etc/a bad", "unit u.service /etc/a"}
		b.give(good...)
		b.pass(time.Minute)
		for n := 1; n < 4; n++ {
			b.give(bad...)
			if b.count("ApplyFailed") != n || b.lastCondition() != "False ApplyFailed" {
				b.t.Error(n, b.told())
			}
			b.give(good...)
			b.pass(time.Minute)
			if b.wantApplied(good...); b.lastCondition() != "True Applied" {
				b.t.Error(n, b.conditions)
			}
		}
		b.h.Behave("u.service", nil)
		b.give(bad...)
		b.pass(time.Minute)
		b.wantApplied(bad...)
	},
	"what was never confirmed breaks nothing as a repair": func(b *bench) {
		b.h.Behave("u.service", func(memory.Start) memory.Outcome {
			if b.content("/etc/b") == "bad" {
				return memory.Outcome{Status: 1}
			}
			return memory.Outcome{}
		})
		b.start()
		b.give("file /etc/a one")
		b.give("file /etc/a one", "file /etc/b bad", "unit u.service /etc/b")
		b.stop()
		b.stop = func() {}
		b.h.Overwrite("/etc/b", "mended by hand")
		if err := b.h.StartUnit(b.t.Context(), "u.service"); err != nil {
			b.t.Fatal(err)
		}
		b.pass(time.Minute)
		ctx, cancel := context.WithCancel(b.t.Context())
		defer func() { cancel(); synctest.Wait() }()
		for i := range 2 {
			b.r.dirty[desired.FileID("/etc/b")], b.r.dirty[desired.FileID("/etc/a")] = true, true
			if err := b.r.drift(ctx); (err != nil) != (i == 0) {
				b.t.Errorf("drift seen to the %d. time: %v", i+1, err)
			}
		}
		b.wantFile("/etc/a", "one")
		b.wantFile("/etc/b", "mended by hand")
		if n := b.restarts("u.service"); n > 3 {
			b.t.Errorf("%d starts", n)
		}
	},
	"back after a document that failed half-way": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		before := b.h.Tree("/etc")
		b.h.Behave("u.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} })
		b.give("file /etc/b x", "file /etc/a two", "unit u.service /etc/a")
		b.give("file /etc/a one")
		if d := cmp.Diff(before, b.h.Tree("/etc")); d != "" {
			b.t.Error(d)
		}
		b.wantApplied("file /etc/a one")
	},
	"taken back after a document that failed half-way": func(b *bench) {
		b.h.Behave("u.service", b.failsWithBad)
		b.h.Behave("v.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} })
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.pass(time.Minute)
		b.give("file /etc/a one", "unit u.service /etc/a", "file /etc/b x", "unit v.service /etc/b")
		b.wantFile("/etc/b", "x")
		b.give("file /etc/a bad", "unit u.service /etc/a")
		b.wantFile("/etc/a", "one")
		b.wantFile("/etc/b", "absent")
		b.pass(25 * time.Minute)
		b.wantFile("/etc/b", "absent")
	},
	"without an API server the last document is kept up": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.stop()
		b.h.Overwrite("/etc/a", "edited")
		b.set(&b.away, true)
		b.start()
		b.pass(startWait)
		b.wantFile("/etc/a", "one")
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		b.wantFile("/etc/a", "one")
	},
	"killed in a trial": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.stop()
		b.h.Overwrite("/etc/a", "two")
		if err := (&trial.Note{Owner: desired.OwnerOSC, Sum: "x"}).Save(b.h); err != nil {
			b.t.Fatal(err)
		}
		b.start()
		b.give("file /etc/a one") // the Secret was set back meanwhile
		b.wantFile("/etc/a", "one")
		if n, err := trial.Load(b.h); n != nil || err != nil {
			b.t.Error("still on trial", err)
		}
	},
	"killed in a trial, and nobody tells what is wanted": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.stop()
		b.h.Overwrite("/etc/a", "two")
		if err := (&trial.Note{Owner: desired.OwnerOSC, Sum: "x"}).Save(b.h); err != nil {
			b.t.Fatal(err)
		}
		b.start()
		b.wantFile("/etc/a", "two")
		b.pass(31 * time.Second)
		b.wantFile("/etc/a", "one")
	},
	"what can't be opened now is tried again": func(b *bench) {
		b.start()
		b.set(&b.away, true)
		b.give("file /etc/a one")
		b.wantFile("/etc/a", "absent")
		b.set(&b.away, false)
		b.pass(10 * time.Second)
		b.wantFile("/etc/a", "one")
	},
	"the record is lost": func(b *bench) {
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.stop()
		for _, text := range []string{"", "{", `{"sum":"old","checksum":"older","reverted":"x"}`, "\x00"} {
			b.h.Put(RecordPath, text, 0o600)
			b.start()
			b.give("file /etc/a one", "unit u.service /etc/a")
			b.wantApplied("file /etc/a one", "unit u.service /etc/a")
			b.stop()
		}
		b.start()
		if n := b.restarts("u.service"); n != 1 {
			b.t.Errorf("%d starts", n)
		}
	},
	"all that berth remembers is lost": func(b *bench) {
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.stop()
		for p := range b.h.Tree("/var/lib/berth") {
			if info, err := b.h.Lstat(p); err == nil && info.IsRegular() {
				_ = b.h.Remove(p)
			}
		}
		b.start()
		b.give("file /etc/a two", "unit u.service /etc/a")
		b.wantFile("/etc/a", "two")
		b.wantApplied("file /etc/a two", "unit u.service /etc/a")
	},
}
