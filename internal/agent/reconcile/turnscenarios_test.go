package reconcile

import (
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// turnScenarios are machines that go one after another.
var turnScenarios = map[string]func(b *bench){
	"one after another": func(b *bench) {
		b.start()
		s := secretOf("file /etc/a one")
		s.Annotations[SerialAnnotation] = "true"
		b.turn = false
		b.r.SeeSecret(s)
		synctest.Wait()
		b.wantFile("/etc/a", "absent")
		b.turn = true
		b.r.Again()
		synctest.Wait()
		b.wantFile("/etc/a", "one")
		if b.released != 1 {
			b.t.Error("the turn is not given on")
		}
	},
	"a refused document gives its turn on": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.released = 0
		s := secretOf("refused")
		s.Annotations[SerialAnnotation] = "true"
		b.r.SeeSecret(s)
		synctest.Wait()
		if b.released != 1 || b.count("ApplyFailed") != 1 {
			b.t.Errorf("the turn was given on %d times: %q", b.released, b.events)
		}
	},
	"a document that another contract stands against gives its turn on and is tried again": func(b *bench) {
		b.inLine = true
		b.others(&desired.File{Path: "/etc/theirs", Content: desired.Text("theirs"), Mode: 0o644, Life: desired.Managed})
		b.start()
		b.give("file /etc/a one")
		b.released, b.opened = 0, 0
		b.r.SeeSecret(serial("file /etc/theirs ours"))
		synctest.Wait()
		for range 120 {
			b.pass(30 * time.Second)
		}
		if b.held || b.released != b.opened || b.opened < 10 || b.opened > 25 {
			b.t.Errorf("%d tries in an hour, the turn was given on %d times", b.opened, b.released)
		}
		b.others()
		b.pass(6 * time.Minute)
		b.wantFile("/etc/theirs", "ours")
	},
	"a refused document keeps the turn of one that came half-way": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.h.Behave("u.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} })
		b.released = 0
		b.r.SeeSecret(serial("file /etc/b x", "unit u.service /etc/b"))
		synctest.Wait()
		b.wantFile("/etc/b", "x")
		b.r.SeeSecret(serial("refused"))
		synctest.Wait()
		if b.released != 0 {
			b.t.Errorf("the turn was given on %d times", b.released)
		}
		b.give("file /etc/a one")
		b.released = 0
		b.r.SeeSecret(serial("refused"))
		synctest.Wait()
		if b.released != 1 {
			b.t.Errorf("in order again, the turn was given on %d times", b.released)
		}
	},
}
