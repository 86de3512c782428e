package reconcile

import (
	"maps"
	"strings"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

func (b *bench) wantType(want core.NodeConditionType) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.types) == 0 || b.types[len(b.types)-1] != want {
		b.t.Errorf("conditions %v, want %s last", b.types, want)
	}
}

// recorded is what is remembered of the documents.
func (b *bench) recorded() record {
	b.t.Helper()
	r, err := loadRecord(b.h, RecordPath)
	if err != nil {
		b.t.Error(err)
	}
	return r
}

// ownerScenarios are Secrets that hold a NodeConfig.
var ownerScenarios = map[string]func(b *bench){
	"what another contract has is disturbed by none that asks for the same, nor by one that does not name it": func(b *bench) {
		same, err := state([]byte("file /etc/a one\nunit u.service /etc/a"))
		if err != nil {
			b.t.Fatal(err)
		}
		b.others(same.Resources...)
		before, jobs := b.h.Tree("/etc"), len(b.h.Jobs())
		undisturbed := func(when string) {
			b.t.Helper()
			now := b.h.Tree("/etc")
			delete(now, "/etc/b")
			if d := cmp.Diff(before, now); d != "" {
				b.t.Errorf("%s: %s", when, d)
			}
			if len(b.h.Jobs()) != jobs || b.h.Units()["u.service"].ActiveState != "active" {
				b.t.Errorf("%s: %v", when, b.h.Jobs()[jobs:])
			}
		}
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.pass(25 * time.Minute)
		b.wantApplied("file /etc/a one", "unit u.service /etc/a")
		undisturbed("asked for the same")
		b.give("file /etc/b one")
		b.pass(25 * time.Minute)
		b.wantApplied("file /etc/b one")
		undisturbed("asked for something else")
	},
	"a NodeConfig is in force as its own owner's": func(b *bench) {
		b.start()
		b.give("node", "file /etc/a one", "unit u.service /etc/a")
		b.wantFile("/etc/a", "one")
		b.wantApplied("node", "file /etc/a one", "unit u.service /etc/a")
		b.wantType(ConditionTypeNode)
		if good, err := trial.Good(b.h, desired.OwnerNode); err != nil || good == nil || b.lastCondition() != "True Applied" {
			b.t.Error(good, err, b.conditions)
		}
		b.give("node", "file /etc/b two")
		b.wantFile("/etc/a", "absent")
		b.wantFile("/etc/b", "two")
	},
	"a NodeConfig is kept up before the Secret is seen again": func(b *bench) {
		b.start()
		b.give("node", "file /etc/a one")
		b.stop()
		b.h.Overwrite("/etc/a", "edited")
		b.start()
		b.pass(startWait)
		b.wantFile("/etc/a", "one")
		b.h.Overwrite("/etc/a", "edited again")
		synctest.Wait()
		b.wantFile("/etc/a", "one")
		if b.count("AppliedByHand") > 0 {
			b.t.Error(b.events)
		}
	},
	"a NodeConfig that was applied by hand before is taken over": func(b *bench) {
		b.byHand(0, "node", "file /etc/a one", "unit u.service /etc/a")
		b.start()
		b.give("node", "file /etc/a one", "unit u.service /etc/a")
		b.wantApplied("node", "file /etc/a one", "unit u.service /etc/a")
		if n := b.restarts("u.service"); n != 1 || b.count("AppliedByHand") > 0 {
			b.t.Errorf("%d starts, %v", n, b.events)
		}
	},
	"another NodeConfig by hand is told and undone": func(b *bench) {
		b.start()
		b.give("node", "file /etc/a one")
		b.byHand(0, "node", "file /etc/b hand")
		b.pass(10 * time.Minute)
		b.wantFile("/etc/a", "one")
		b.wantFile("/etc/b", "absent")
		if b.count("AppliedByHand") != 1 {
			b.t.Error(b.events)
		}
	},
	"an OperatingSystemConfig by hand is another owner's beside a NodeConfig": func(b *bench) {
		b.start()
		b.give("node", "file /etc/a one")
		b.byHand(0, "file /etc/b hand")
		b.pass(10 * time.Minute)
		b.wantFile("/etc/a", "one")
		b.wantFile("/etc/b", "hand")
		if b.count("AppliedByHand") > 0 {
			b.t.Error(b.events)
		}
	},
	"a document of another kind is refused, and what is in force stays": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		for range 2 {
			b.give("node", "file /etc/b two")
			b.pass(10 * time.Minute)
			b.wantFile("/etc/a", "one")
			b.wantFile("/etc/b", "absent")
			b.wantApplied("file /etc/a one")
			b.wantType(ConditionType)
			if b.lastCondition() != "False ApplyFailed" || b.count("ApplyFailed") != 1 || !strings.Contains(strings.Join(b.events, " "), "NodeConfig") {
				b.t.Error(b.conditions, b.events)
			}
			b.stop()
			b.events = nil
			b.start()
		}
		b.give("file /etc/a three")
		b.wantFile("/etc/a", "three")
		if b.lastCondition() != "True Applied" {
			b.t.Error(b.conditions)
		}
	},
	"the kind of a first document that was refused does not count": func(b *bench) {
		b.start()
		b.give("node", "garbage")
		b.wantType(ConditionTypeNode)
		b.give("file /etc/a one")
		b.wantFile("/etc/a", "one")
		b.wantType(ConditionType)
	},
	"the kind comes out of the Secret again where the record is lost": func(b *bench) {
		b.start()
		b.give("node", "file /etc/a one")
		b.stop()
		if err := b.h.Remove(RecordPath); err != nil {
			b.t.Fatal(err)
		}
		b.start()
		b.give("node", "file /etc/a two")
		b.wantFile("/etc/a", "two")
		b.wantApplied("node", "file /etc/a two")
		b.wantType(ConditionTypeNode)
		if b.count("AppliedByHand") > 0 {
			b.t.Error(b.events)
		}
	},
	"a record of a kind that the source no longer brings says nothing": func(b *bench) {
		b.start()
		b.give("node", "file /etc/a one")
		b.stop()
		b.owners = []desired.Owner{desired.OwnerOSC} // a file has the NodeConfig from now on
		b.h.Overwrite("/etc/a", "theirs")
		b.start()
		b.pass(20 * time.Minute)
		b.wantFile("/etc/a", "theirs")
		if r := b.recorded(); r.Owner != "" || r.Sum != "" || r.Checksum != "" { // a reset would take what the file asks for
			b.t.Errorf("%+v", r)
		}
		b.give("file /etc/b one")
		b.wantFile("/etc/b", "one")
		if r := b.recorded(); r.Owner != desired.OwnerOSC {
			b.t.Errorf("%+v", r)
		}
	},
	"a NodeConfig that came half-way is its owner's": func(b *bench) {
		broken := true
		b.h.Behave("u.service", func(memory.Start) memory.Outcome {
			if broken {
				return memory.Outcome{Status: 1}
			}
			return memory.Outcome{}
		})
		b.start()
		b.give("node", "file /etc/a one", "unit u.service /etc/a")
		b.wantFile("/etc/a", "one")
		for range 2 {
			if r := b.recorded(); r.Owner != desired.OwnerNode || r.Sum != "" {
				b.t.Errorf("%+v", r)
			}
			b.give("file /etc/b two")
			b.pass(10 * time.Minute)
			b.wantFile("/etc/b", "absent")
			b.wantType(ConditionTypeNode)
			if b.lastCondition() != "False ApplyFailed" || !strings.Contains(strings.Join(b.events, " "), "NodeConfig") {
				b.t.Error(b.conditions, b.events)
			}
			b.stop()
			b.events = nil
			b.start()
		}
		broken = false
		b.give("node", "file /etc/a one", "unit u.service /etc/a")
		b.wantApplied("node", "file /etc/a one", "unit u.service /etc/a")
	},
	"a NodeConfig that was cut off is its owner's": func(b *bench) {
		injector := effect.Inject(b.h, effect.Plan{{At: 15, Kind: effect.StopAfter}})
		b.engineHost = injector
		b.start()
		b.give("node", "file /etc/a one", "unit u.service /etc/a")
		if injector.Hit() == nil || !b.r.holds(desired.OwnerNode) {
			b.t.Fatal("nothing was begun")
		}
		if r := b.recorded(); r.Owner != desired.OwnerNode {
			b.t.Errorf("%+v", r)
		}
	},
	"a NodeConfig that left nothing is nobody's": func(b *bench) {
		b.others(&desired.File{Path: "/etc/a", Content: desired.Text("theirs"), Mode: 0o644, Life: desired.Managed})
		b.start()
		b.give("node", "file /etc/a one")
		if r := b.recorded(); r.Owner != "" || b.lastCondition() != "False ApplyFailed" {
			b.t.Errorf("%+v, %v", r, b.conditions)
		}
		b.give("file /etc/b two")
		b.wantFile("/etc/b", "two")
		if r := b.recorded(); r.Owner != desired.OwnerOSC {
			b.t.Errorf("%+v", r)
		}
	},
	"the condition of a kind that is no longer followed says so": func(b *bench) {
		const others core.NodeConditionType = "Ready"
		for _, kind := range []core.NodeConditionType{ConditionTypeNode, ConditionTypeAKS, others} {
			b.node.Status.Conditions = append(b.node.Status.Conditions, core.NodeCondition{Type: kind, Status: core.ConditionTrue})
		}
		b.start()
		b.give("file /etc/a one")
		b.r.SeeNode()
		b.pass(20 * time.Minute)
		got := map[core.NodeConditionType]string{}
		for _, c := range b.Get().Status.Conditions {
			got[c.Type] = string(c.Status) + " " + c.Reason
		}
		want := map[core.NodeConditionType]string{ConditionType: "True Applied", ConditionTypeNode: "Unknown NotFollowed", ConditionTypeAKS: "True ", others: "True "}
		if !maps.Equal(got, want) || b.unfollowed != 1 {
			b.t.Error(got, b.conditions)
		}
	},
	"a kind that is noted of a machine that has nothing of it does not count": func(b *bench) {
		b.h.PutDir("/var/lib/berth")
		b.h.Put(RecordPath, `{"owner":"node"}`, 0o600)
		b.start()
		b.give("file /etc/b two")
		b.wantApplied("file /etc/b two")
		if r := b.recorded(); r.Owner != desired.OwnerOSC {
			b.t.Errorf("%+v", r)
		}
	},
	"another source's trial is not this one's, whatever its kind": func(b *bench) {
		b.start()
		b.give("node", "file /etc/a one")
		n := b.cutOffOf(desired.OwnerOSC)
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
}
