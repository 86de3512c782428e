package reconcile

import (
	"context"
	"strings"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
)

// byHand is berth apply with a document of this contract; within is how long a person
// has to confirm it.
func (b *bench) byHand(within time.Duration, lines ...string) {
	b.t.Helper()
	d := DocumentOf([]byte(strings.Join(lines, "\n")))
	st, err := state(d.Text)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.engine(d.Text, within).Apply(b.t.Context(), st); err != nil {
		b.t.Fatal(err)
	}
}

// cutOffOf leaves the trial of a contract as a run that was cut off leaves it.
func (b *bench) cutOffOf(o desired.Owner) *trial.Note {
	b.t.Helper()
	boot, _ := b.h.ReadFile("/proc/sys/kernel/random/boot_id")
	n := &trial.Note{Owner: o, Sum: "s", Boot: ledger.Boot{Kernel: strings.TrimSpace(string(boot))}, Began: b.h.Now()}
	for _, err := range []error{
		trial.Keep(b.h, o, &trial.Contract{Document: []byte("file /etc/theirs good")}), trial.Arm(b.h, n, "/berth", nil),
	} {
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return n
}

func (b *bench) isOnTrial() bool {
	n, err := trial.Load(b.h)
	if err != nil {
		b.t.Error(err)
	}
	return n != nil
}

// trialScenarios are changes of others that are on trial, and documents that others put
// in force.
var trialScenarios = map[string]func(b *bench){
	"another run that takes long is awaited": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		for took, failures := range map[time.Duration]int{10 * time.Minute: 0, 30 * time.Minute: 1} {
			unlock, err := b.h.Lock(b.t.Context(), ledger.LockPath, "somebody")
			if err != nil {
				b.t.Fatal(err)
			}
			text := "file /etc/a " + took.String()
			b.r.SeeSecret(secretOf(text))
			b.h.Overwrite("/etc/a", "edited")
			b.pass(took)
			if n := b.count("ApplyFailed") + b.count("RepairFailed"); n < failures || failures == 0 && n > 0 {
				b.t.Error(took, b.told())
			}
			if err := unlock(); err != nil {
				b.t.Fatal(err)
			}
			b.pass(10 * time.Minute)
			b.wantFile("/etc/a", took.String())
			if b.wantApplied(text); b.lastCondition() != "True Applied" {
				b.t.Error(took, b.conditions)
			}
			b.events = nil
		}
	},
	"another source goes on with its trial itself": func(b *bench) {
		n := b.cutOffOf(desired.OwnerAKS)
		b.start()
		b.give("file /etc/a one")
		b.pass(resumeWait + 10*time.Second)
		if b.wantFile("/etc/a", "absent"); !b.isOnTrial() || b.count("ApplyFailed") > 0 {
			b.t.Error("it is taken back", b.events)
		}
		if err := trial.Disarm(b.t.Context(), b.h, n); err != nil {
			b.t.Fatal(err)
		}
		b.pass(recheck)
		b.wantFile("/etc/a", "one")
		b.wantFile("/etc/theirs", "absent")
	},
	"a trial with which nobody goes on is taken back": func(b *bench) {
		b.cutOffOf(desired.OwnerAKS)
		b.start()
		b.give("file /etc/a one")
		b.h.Advance(-time.Hour)
		b.pass(otherWait + recheck)
		if b.wantFile("/etc/a", "one"); b.isOnTrial() {
			b.t.Error("the trial is left")
		}
	},
	"drift is not repaired into another source's trial": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		n := b.cutOffOf(desired.OwnerAKS)
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		if b.wantFile("/etc/a", "edited"); !b.isOnTrial() {
			b.t.Error("it is taken back")
		}
		if err := trial.Disarm(b.t.Context(), b.h, n); err != nil {
			b.t.Fatal(err)
		}
		b.pass(recheck)
		b.wantFile("/etc/a", "one")
	},
	"a person's trial is left alone until it is over": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.h.Put("/proc/uptime", "100.00 7.00\n", 0o444)
		b.byHand(10*time.Minute, "file /etc/a hand")
		b.pass(time.Minute)
		b.h.Put("/proc/uptime", "160.00 7.00\n", 0o444) // it is told once, though less is left
		b.give("file /etc/a two")
		b.pass(time.Minute)
		if told := "waits to be confirmed, within 10m0s, and"; !strings.Contains(strings.Join(b.events, "\n"), told) {
			b.t.Errorf("%q is not in %q", told, b.events)
		}
		if b.wantFile("/etc/a", "hand"); !b.isOnTrial() || b.count("AppliedByHand") != 1 || b.count("ApplyFailed") > 0 {
			b.t.Error(b.isOnTrial(), b.events)
		}
		if _, err := b.engine(nil, 0).Revert(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		b.pass(recheck)
		b.wantFile("/etc/a", "two")
		b.wantApplied("file /etc/a two")
	},
	"a person's trial that is confirmed is not the document": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.byHand(10*time.Minute, "file /etc/a hand", "file /etc/b hand")
		synctest.Wait()
		if o, err := b.engine(nil, 0).Confirm(b.t.Context()); o != desired.OwnerOSC || err != nil {
			b.t.Fatal(o, err)
		}
		b.pass(recheck)
		b.wantFile("/etc/a", "one")
		b.wantFile("/etc/b", "absent")
		if b.count("AppliedByHand") != 2 {
			b.t.Error(b.events)
		}
	},
	"another document that was applied by hand is told and undone": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		for n := range 2 {
			b.byHand(0, "file /etc/b hand")
			b.pass(10 * time.Minute)
			b.wantFile("/etc/a", "one")
			b.wantFile("/etc/b", "absent")
			if b.count("AppliedByHand") != n+1 || b.count("RepairFailed") > 0 {
				b.t.Error(b.events)
			}
		}
		if good, err := trial.Good(b.h, desired.OwnerOSC); err != nil || string(good.Document) != "file /etc/a one" {
			b.t.Error("another document is the last good one", err)
		}
	},
	"the same document by hand is nothing to tell": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.byHand(0, "file /etc/a one")
		b.pass(10 * time.Minute)
		if b.count("AppliedByHand") > 0 {
			b.t.Error(b.events)
		}
	},
	"during a pause another document stays": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.paused = b.h.Now().Add(time.Hour)
		b.byHand(0, "file /etc/a hand")
		b.pass(10 * time.Minute)
		if b.wantFile("/etc/a", "hand"); b.count("AppliedByHand") != 1 {
			b.t.Error(b.events)
		}
		b.pass(time.Hour)
		if b.wantFile("/etc/a", "one"); b.count("AppliedByHand") != 2 {
			b.t.Error(b.events)
		}
	},
	"with drift that is reported another document stays": func(b *bench) {
		b.options.Drift.Policy = config.Report
		b.start()
		b.give("file /etc/a one")
		b.byHand(0, "file /etc/a hand")
		b.pass(10 * time.Minute)
		if b.wantFile("/etc/a", "hand"); b.count("AppliedByHand") != 1 {
			b.t.Error(b.events)
		}
		b.give("file /etc/a two")
		b.wantFile("/etc/a", "two")
	},
}

// engine is one for a document; with within its changes wait for a person's word.
func (b *bench) engine(document []byte, within time.Duration) *converge.Engine {
	return converge.New(converge.Options{Host: b.machineOf(), Command: "test", Workers: 4, GoOn: true, UnitTimeout: 3 * time.Minute, Trial: &converge.Trial{
		Contract:     trial.Contract{Document: document},
		State:        func(_ context.Context, c *trial.Contract) (*desired.State, error) { return state(c.Document) },
		Stands:       func(context.Context, *desired.State) trial.Standing { return trial.Standing{} },
		Await:        func(context.Context, *desired.State, trial.Standing) (string, error) { return "", nil },
		LastLogLines: func(context.Context, string) string { return "" },
		Program:      "/berth", Within: within, Yields: document != nil && within == 0,
	}})
}
