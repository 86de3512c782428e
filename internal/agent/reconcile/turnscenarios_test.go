package reconcile

import (
	"context"
	"errors"
	"path"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// lose ends the turn. Another machine has it then.
func (b *bench) lose() {
	b.set(&b.turn, false)
	b.lost()
}

// losesItsTurn gives a document and has the turn lost meanwhile: the file is what it was or
// what it is to be, nothing is told as a failure, and with the next turn all is in force.
func (b *bench) losesItsTurn(was, meanwhile string, more ...string) {
	b.t.Helper()
	b.released = 0
	b.lasts, b.lost = context.WithCancel(b.t.Context())
	b.r.SeeSecret(serial(append([]string{"file /etc/a two"}, more...)...))
	synctest.Wait()
	b.wantFile("/etc/a", meanwhile)
	if b.count("ApplyFailed") != 0 || b.released != 0 && was == meanwhile {
		b.t.Errorf("given on %d times: %q", b.released, b.told())
	}
	b.opening, b.engineHost, b.lasts = nil, nil, nil
	b.set(&b.turn, true)
	b.r.Again()
	b.pass(time.Second)
	b.wantFile("/etc/a", "two")
	b.wantApplied(append([]string{"file /etc/a two"}, more...)...)
}

// staging is a machine that tells when a file is made.
type staging struct {
	*memory.Host
	made func()
}

// Create implements host.FS.
func (s staging) Create(p string) (host.File, error) {
	if path.Dir(p) == "/etc" {
		s.made()
	}
	return s.Host.Create(p)
}

// turnScenarios are machines that go one after another.
var turnScenarios = map[string]func(b *bench){
	"an agent that fell back waits anew for a turn that was lost": func(b *bench) {
		b.updateFails(&selfupdate.FellBackError{Err: errors.New("not proven")})
		b.set(&b.turn, true)
		b.start()
		b.r.SeeSecret(serial("file /etc/a one", "agent two"))
		synctest.Wait()
		if b.released != 0 || b.count("AgentUpdateFailed") != 1 {
			b.t.Errorf("given on %d times: %q", b.released, b.told())
		}
		asked := b.asked
		b.r.Again() // as when it was lost
		synctest.Wait()
		if b.asked != asked+1 {
			b.t.Errorf("asked %d times, then %d", asked, b.asked)
		}
	},
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
	"a document waits for no turn any more when its pool no longer goes one after another": func(b *bench) {
		b.turn = false
		b.start()
		b.r.SeeSecret(serial("file /etc/a one"))
		synctest.Wait()
		b.wantFile("/etc/a", "absent")
		b.give("file /etc/a one")
		b.wantFile("/etc/a", "one")
		if b.wantApplied("file /etc/a one"); b.released == 0 {
			b.t.Error("the turn that was asked for is not given on")
		}
	},
	"a turn that is lost while a document is read lets nothing of it begin": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.opening = func(ctx context.Context) { b.lose(); <-ctx.Done() }
		b.losesItsTurn("one", "one")
	},
	"a turn that is lost while a document is fetched lets nothing of it begin": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.engineHost = staging{b.h, b.lose}
		b.losesItsTurn("one", "one")
	},
	"a turn that is lost in the middle of a change does not cut it off": func(b *bench) {
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.h.Behave("u.service", func(memory.Start) memory.Outcome { b.lose(); return memory.Outcome{} })
		b.losesItsTurn("one", "two", "unit u.service /etc/a")
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
		b.stop()
		b.start()
		b.r.SeeSecret(serial("refused"))
		synctest.Wait()
		if b.released != 0 {
			b.t.Errorf("after a restart of the agent the turn was given on %d times", b.released)
		}
		b.pass(time.Minute) // all of the last good document is in force again
		b.r.SeeSecret(serial("refused", "too"))
		synctest.Wait()
		if b.released != 1 {
			b.t.Errorf("with the last good document in force the turn was given on %d times", b.released)
		}
		b.give("file /etc/a one")
		b.released = 0
		b.r.SeeSecret(serial("refused"))
		synctest.Wait()
		if b.released != 1 {
			b.t.Errorf("in order again, the turn was given on %d times", b.released)
		}
	},
	"the turn of a document that was taken back is kept over a restart of the agent": func(b *bench) {
		b.h.Behave("u.service", b.failsWithBad)
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.pass(time.Minute)
		b.released = 0
		b.r.SeeSecret(serial("file /etc/a bad", "unit u.service /etc/a"))
		synctest.Wait()
		b.wantFile("/etc/a", "one")
		b.stop()
		b.asked = 0
		b.start()
		b.r.SeeSecret(serial("file /etc/a bad", "unit u.service /etc/a"))
		b.pass(time.Minute)
		if b.asked == 0 || b.released != 0 {
			b.t.Errorf("the turn was asked for %d times and given on %d times", b.asked, b.released)
		}
	},
	"an agent that could not be had when its document had its turn asks for the turn again": func(b *bench) {
		b.updateFails(errors.New("no registry"))
		b.start()
		b.r.SeeSecret(serial("file /etc/a one", "agent two"))
		synctest.Wait()
		b.wantFile("/etc/a", "one")
		b.set(&b.turn, false) // another machine has it by now
		b.ends = true
		b.updateFails(nil)
		tries := b.updates
		b.pass(time.Hour)
		if b.updates != tries || b.placed != 0 || b.count("AgentUpdateFailed") != 1 {
			b.t.Errorf("%d updates, %d agents in place without the turn: %q", b.updates-tries, b.placed, b.told())
		}
		b.set(&b.turn, true)
		b.r.Again()
		b.pass(time.Second)
		if b.placed != 1 || b.released != 0 {
			b.t.Errorf("with the turn %d agents are in place, and it was given on %d times", b.placed, b.released)
		}
	},
	"a turn that is lost while an agent is fetched puts none in place": func(b *bench) {
		b.ends = true
		b.start()
		b.lasts, b.lost = context.WithCancel(b.t.Context())
		b.fetching = func() { b.turn = false; b.lost() }
		b.r.SeeSecret(serial("file /etc/a one", "agent two"))
		synctest.Wait()
		b.wantFile("/etc/a", "one")
		if b.updates != 1 || b.placed != 0 || b.count("AgentUpdateFailed") != 0 || b.released != 0 {
			b.t.Errorf("%d updates, %d agents in place, given on %d times: %q", b.updates, b.placed, b.released, b.told())
		}
		b.fetching, b.lasts = nil, nil
		b.set(&b.turn, true)
		b.r.Again()
		b.pass(time.Second)
		if b.placed != 1 || b.released != 0 {
			b.t.Errorf("with the next turn %d agents are in place, given on %d times", b.placed, b.released)
		}
	},
	"an agent beside a unit that fails waits for the turn, too": func(b *bench) {
		b.h.Behave("u.service", fails)
		b.ends = true
		b.start()
		b.lasts, b.lost = context.WithCancel(b.t.Context())
		b.fetching = func() { b.turn = false; b.lost() }
		b.r.SeeSecret(serial("file /etc/a one", "unit u.service /etc/a", "agent two"))
		b.pass(time.Minute)
		if b.updates != 1 || b.placed != 0 || b.count("AgentUpdateFailed") != 0 {
			b.t.Errorf("%d updates, %d agents in place: %q", b.updates, b.placed, b.told())
		}
	},
	"the agent that runs after an update keeps the turn until its document is in force": func(b *bench) {
		b.ends = true
		b.start()
		b.r.SeeSecret(serial("agent two"))
		synctest.Wait()
		if b.placed != 1 || b.released != 0 {
			b.t.Errorf("%d agents in place, given on %d times", b.placed, b.released)
		}
		b.stop()
		b.onTrial, b.ends, b.inLine = true, false, true
		b.start()
		b.r.SeeSecret(serial("agent two"))
		b.pass(time.Second)
		b.wantApplied("agent two")
		if b.proofs != 1 || b.released != 1 {
			b.t.Errorf("%d proofs, given on %d times", b.proofs, b.released)
		}
	},
}
