package reconcile

import (
	"testing/synctest"
	"time"
)

// nodeScenarios are what the Node says.
var nodeScenarios = map[string]func(b *bench){
	"what the Node does not take is written later": func(b *bench) {
		b.set(&b.unwritable, true)
		b.start()
		b.give("file /etc/a one")
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		b.wantFile("/etc/a", "one")
		b.set(&b.unwritable, false)
		b.pass(time.Minute)
		b.wantApplied("file /etc/a one")
		if b.lastCondition() != "True Applied" {
			b.t.Error(b.conditions)
		}
	},
	"no Node yet": func(b *bench) {
		n := b.node
		b.node = nil
		b.start()
		b.give("file /etc/a one")
		b.wantFile("/etc/a", "one")
		if b.joined != 0 || b.patches != 0 {
			b.t.Error("it speaks of a Node that is not there")
		}
		b.node = n
		b.r.SeeNode()
		synctest.Wait()
		b.wantApplied("file /etc/a one")
		if b.joined == 0 || b.lastCondition() != "True Applied" {
			b.t.Error(b.joined, b.conditions)
		}
	},
	"a label that is refused": func(b *bench) {
		b.forbidden = "l"
		b.start()
		b.give("file /etc/a one")
		for range 3 {
			b.r.SeeNode()
			b.pass(time.Minute)
		}
		b.wantApplied("file /etc/a one")
		if b.forbade != 1 || b.count("LabelRefused") != 1 || b.node.Labels["m"] != "w" || b.lastCondition() != "True Applied" {
			b.t.Error(b.forbade, b.events, b.node.Labels, b.conditions)
		}
	},
	"the annotation comes back": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		patches := b.patches
		b.r.SeeNode()
		synctest.Wait()
		if b.patches != patches {
			b.t.Error("what is there is written again")
		}
		b.node.Annotations = nil
		b.r.SeeNode()
		synctest.Wait()
		b.wantApplied("file /etc/a one")
	},
}
