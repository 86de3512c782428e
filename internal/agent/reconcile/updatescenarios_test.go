package reconcile

import (
	"errors"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// updateScenarios are the agent out of a document.
var updateScenarios = map[string]func(b *bench){
	"the agent comes last, and the Node tells when it has": func(b *bench) {
		b.ends = true
		b.start()
		b.give("file /etc/a one", "agent two")
		b.wantFile("/etc/a", "one")
		if b.updates != 1 || b.node.Annotations[AppliedAnnotation] != "" {
			b.t.Error(b.updates, b.node.Annotations)
		}
		b.stop()
		b.onTrial, b.ends = true, false
		b.start()
		b.give("file /etc/a one", "agent two")
		b.wantApplied("file /etc/a one", "agent two")
		if b.proofs != 1 || b.updates != 2 || b.lastCondition() != "True Applied" {
			b.t.Error(b.proofs, b.updates, b.conditions)
		}
	},
	"a unit that fails keeps no agent from coming": func(b *bench) {
		document := []string{"file /etc/a one", "unit u.service /etc/a", "agent two"}
		b.h.Behave("u.service", fails)
		b.ends = true
		b.start()
		b.give(document...)
		if b.updates != 1 || b.node.Annotations[AppliedAnnotation] != "" || b.lastCondition() != "False ApplyFailed" {
			b.t.Error(b.updates, b.node.Annotations, b.conditions)
		}
		b.stop()
		b.onTrial, b.ends = true, false
		b.start()
		b.give(document...)
		b.pass(time.Minute)
		if b.proofs != 1 || b.node.Annotations[AppliedAnnotation] != "" {
			b.t.Error(b.proofs, b.node.Annotations)
		}
		b.h.Behave("u.service", func(memory.Start) memory.Outcome { return memory.Outcome{} })
		b.pass(10 * time.Minute)
		b.wantApplied(document...)
	},
	"an agent that falls back beside a unit that fails is told, too": func(b *bench) {
		b.h.Behave("u.service", fails)
		b.updateFails(&selfupdate.FellBackError{Err: errors.New("not proven")})
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a", "agent two")
		b.pass(time.Hour)
		if b.count("AgentUpdateFailed") != 1 || b.count("ApplyFailed") != 1 || b.node.Annotations[AppliedAnnotation] != "" {
			b.t.Error(b.events, b.node.Annotations)
		}
	},
	"a change that is taken back brings no agent": func(b *bench) {
		b.h.Behave("u.service", func(s memory.Start) memory.Outcome {
			if b.content("/etc/a") == "bad" {
				return fails(s)
			}
			return memory.Outcome{}
		})
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.pass(time.Minute)
		b.give("file /etc/a bad", "unit u.service /etc/a", "agent two")
		b.pass(time.Hour)
		b.wantFile("/etc/a", "one")
		if b.updates != 0 {
			b.t.Error(b.updates)
		}
	},
	"an agent that fell back is told, and the rest is kept": func(b *bench) {
		b.updateFails(&selfupdate.FellBackError{Err: errors.New("not proven")})
		b.start()
		b.give("file /etc/a one", "agent two")
		b.wantFile("/etc/a", "one")
		b.pass(time.Hour)
		if b.updates != 1 || b.count("AgentUpdateFailed") != 1 || b.lastCondition() != "False AgentUpdateFailed" || b.node.Annotations[AppliedAnnotation] != "" {
			b.t.Error(b.updates, b.events, b.conditions, b.node.Annotations)
		}
		b.h.Put("/etc/a", "edited", 0o644)
		b.pass(time.Minute)
		b.wantFile("/etc/a", "one")
		b.give("file /etc/a one", "agent two again")
		b.give("file /etc/a one", "agent two again")
		b.pass(time.Second)
		if b.count("AgentUpdateFailed") != 2 || b.released != 0 {
			b.t.Error(b.events, "the turn was given on: ", b.released)
		}
		b.updateFails(nil)
		b.give("file /etc/a one", "agent three")
		b.pass(time.Second)
		b.wantApplied("file /etc/a one", "agent three")
		if b.lastCondition() != "True Applied" || b.released == 0 {
			b.t.Error(b.conditions, b.released)
		}
	},
	"an agent that can't be had yet is tried again": func(b *bench) {
		b.updateFails(errors.New("no registry"))
		b.start()
		b.give("file /etc/a one", "agent two")
		b.updateFails(nil)
		b.pass(time.Minute)
		b.wantApplied("file /etc/a one", "agent two")
		if b.updates != 2 || b.lastCondition() != "True Applied" {
			b.t.Error(b.updates, b.conditions)
		}
	},
	"an agent that has yet to prove itself repairs nothing before": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.stop()
		b.h.Put("/etc/a", "edited", 0o644)
		b.onTrial = true
		b.start()
		b.pass(2 * time.Minute)
		b.wantFile("/etc/a", "edited")
		b.give("file /etc/a one")
		b.pass(time.Minute)
		b.wantFile("/etc/a", "one")
	},
	"the agent's own files are kept up": func(b *bench) {
		const unit = "/etc/systemd/system/agent.service"
		b.owns(unit)
		b.start()
		b.give("file /etc/a one")
		for n := range 2 {
			b.h.Overwrite(unit, "edited")
			synctest.Wait()
			b.wantFile(unit, unitText)
			if b.count("DriftRepaired") != n+1 {
				b.t.Error(b.events)
			}
		}
		b.paused = b.h.Now().Add(time.Hour)
		b.h.Overwrite(unit, "edited")
		synctest.Wait()
		b.wantFile(unit, "edited")
		if b.count("DriftReported") != 1 {
			b.t.Error(b.events)
		}
		b.pass(2 * time.Hour)
		b.wantFile(unit, unitText)
	},
	"another run is awaited before the agent's own files are brought back": func(b *bench) {
		const unit = "/etc/systemd/system/agent.service"
		b.owns(unit)
		b.start()
		b.give("file /etc/a one")
		unlock, err := b.h.Lock(b.t.Context(), ledger.LockPath, "somebody")
		if err != nil {
			b.t.Fatal(err)
		}
		b.h.Overwrite(unit, "edited")
		b.pass(10 * time.Minute)
		if b.count("RepairFailed") > 0 || b.lastCondition() != "True Applied" {
			b.t.Error(b.told(), b.conditions)
		}
		if err := unlock(); err != nil {
			b.t.Fatal(err)
		}
		b.pass(2 * time.Minute)
		b.wantFile(unit, unitText)
	},
	"the agent's own files are reported where that is wanted": func(b *bench) {
		const unit = "/etc/systemd/system/agent.service"
		b.options.Drift.Paths = []config.PathPolicy{{Path: unit, Policy: config.Report}}
		b.owns(unit)
		b.start()
		b.give("file /etc/a one")
		b.h.Overwrite(unit, "edited")
		b.pass(20 * time.Minute)
		b.wantFile(unit, "edited")
		if b.count("DriftReported") != 1 || b.count("RepairFailed") > 0 {
			b.t.Error(b.events)
		}
	},
	"an agent on trial is not brought back": func(b *bench) {
		const unit = "/etc/systemd/system/agent.service"
		b.owns(unit)
		b.start()
		b.give("file /etc/a one")
		n := b.cutOffOf(desired.OwnerBerth)
		b.h.Overwrite(unit, "new")
		synctest.Wait()
		b.wantFile(unit, "new")
		if err := trial.Disarm(b.t.Context(), b.h, n); err != nil {
			b.t.Fatal(err)
		}
		b.pass(10 * time.Minute)
		b.wantFile(unit, unitText)
	},
}

// owns makes a unit the agent's own.
func (b *bench) owns(p string) {
	b.t.Helper()
	st := &desired.State{Owner: desired.OwnerBerth}
	st.Add(&desired.File{Path: p, Content: desired.Text(unitText), Mode: 0o644, Life: desired.Managed})
	if err := st.Seal(); err != nil {
		b.t.Fatal(err)
	}
	b.ownState = st
	if _, err := converge.New(converge.Options{Host: b.h, Command: "test", Workers: 1}).Apply(b.t.Context(), st); err != nil {
		b.t.Fatal(err)
	}
}
