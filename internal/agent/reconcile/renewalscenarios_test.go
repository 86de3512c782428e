package reconcile

import (
	"context"
	"encoding/json"
	"strings"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// keeps notes other facts with the document in force: they say what it asks for from now on.
func (b *bench) keeps(lines ...string) {
	b.t.Helper()
	b.keepsOf(desired.OwnerAKS, append([]string{"aks"}, lines...)...)
}

func (b *bench) keepsOf(owner desired.Owner, lines ...string) {
	b.t.Helper()
	good, err := trial.Good(b.h, owner)
	if err != nil || good == nil {
		b.t.Fatalf("no document is in force: %v", err)
	}
	if good.Facts, err = json.Marshal(strings.Join(lines, "\n")); err != nil {
		b.t.Fatal(err)
	}
	if err := trial.Keep(b.h, owner, good); err != nil {
		b.t.Fatal(err)
	}
}

// startAKS starts with documents of AKS.
func (b *bench) startAKS() {
	b.owners = []desired.Owner{desired.OwnerAKS}
	b.start()
}

// renews is what a timer of the machine does: it notes other facts, and brings the machine
// to what they make of the document.
func (b *bench) renews(lines ...string) {
	b.t.Helper()
	b.keeps(lines...)
	st, err := state([]byte("aks\n" + strings.Join(lines, "\n")))
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := converge.New(converge.Options{Host: b.h, Command: "a timer", Workers: 1}).Apply(b.t.Context(), st); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// interrupted is a machine at which something else happens when its lock is asked for next.
type interrupted struct {
	*memory.Host
	by func()
}

// Lock implements host.Locker.
func (i *interrupted) Lock(ctx context.Context, p, holder string) (func() error, error) {
	if by := i.by; by != nil {
		i.by = nil
		by()
	}
	return i.Host.Lock(ctx, p, holder)
}

// renewalScenarios are what timers of the machine ask its cloud for while a document is in
// force.
var renewalScenarios = map[string]func(b *bench){
	"what a timer renews stays": func(b *bench) {
		b.startAKS()
		b.give("aks", "file /etc/a one")
		for _, lines := range [][]string{{"file /etc/a one", "file /etc/b x"}, {"file /etc/a two", "file /etc/c x"}} {
			b.renews(lines...)
			b.pass(25 * time.Minute)
			for _, p := range []string{"/etc/a", "/etc/b", "/etc/c"} {
				want := "absent"
				for _, line := range lines {
					if text, ok := strings.CutPrefix(line, "file "+p+" "); ok {
						want = text
					}
				}
				b.wantFile(p, want)
			}
		}
		if b.count("DriftRepaired") > 0 || b.count("AppliedByHand") > 0 {
			b.t.Error(b.told())
		}
		b.wantApplied("aks", "file /etc/a one")
	},
	"what a timer has renewed is kept as the rest": func(b *bench) {
		b.startAKS()
		b.give("aks", "file /etc/a one")
		b.renews("file /etc/a two", "file /etc/b x")
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		b.wantFile("/etc/a", "two")
		b.h.Overwrite("/etc/b", "edited")
		synctest.Wait()
		b.wantFile("/etc/b", "x")
		b.stop()
		b.startAKS()
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		b.wantFile("/etc/a", "two")
	},
	"what a timer has noted and not done is done": func(b *bench) {
		b.startAKS()
		b.give("aks", "file /etc/a one")
		b.keeps("file /etc/a two", "file /etc/b x")
		b.pass(11 * time.Minute)
		b.wantFile("/etc/a", "two")
		b.wantFile("/etc/b", "x")
	},
	"what a timer renews while a repair waits for it": func(b *bench) {
		at := &interrupted{Host: b.h}
		b.engineHost = at
		b.startAKS()
		b.give("aks", "file /etc/a one", "file /etc/b one")
		at.by = func() {
			b.keeps("file /etc/a two", "file /etc/b one")
			b.h.Overwrite("/etc/a", "two")
		}
		b.h.Overwrite("/etc/a", "edited")
		synctest.Wait()
		b.pass(time.Minute)
		if b.wantFile("/etc/a", "two"); b.count("DriftRepaired") > 0 || b.count("RepairFailed") > 0 {
			b.t.Error(b.told())
		}
	},
	"what a timer renews while the document before it is brought back": func(b *bench) {
		b.h.Behave("u.service", fails)
		b.startAKS()
		b.give("aks", "file /etc/a one")
		b.give("aks", "file /etc/a two", "unit u.service /etc/a")
		b.stop()
		b.startAKS()
		if !b.r.record.Half {
			b.t.Error("the document did not come half-way")
		}
		b.keeps("file /etc/a three")
		b.pass(time.Minute)
		if b.wantFile("/etc/a", "three"); b.r.record.Half {
			b.t.Error("what is half-way is left so")
		}
	},
	"where drift is reported": func(b *bench) {
		b.options.Drift.Policy = config.Report
		b.startAKS()
		b.give("aks", "file /etc/a one")
		b.renews("file /etc/a two")
		b.pass(25 * time.Minute)
		if b.wantFile("/etc/a", "two"); b.count("DriftReported") > 0 {
			b.t.Error(b.told())
		}
	},
	"other facts of another kind's document are no timer's": func(b *bench) {
		b.start()
		b.give("node", "file /etc/a one")
		b.keepsOf(desired.OwnerNode, "node", "file /etc/a two")
		b.pass(25 * time.Minute)
		b.wantFile("/etc/a", "one")
	},
	"a new document comes after all": func(b *bench) {
		b.startAKS()
		b.give("aks", "file /etc/a one")
		b.renews("file /etc/a two", "file /etc/b x")
		b.give("aks", "file /etc/a three")
		b.pass(25 * time.Minute)
		b.wantFile("/etc/a", "three")
		b.wantFile("/etc/b", "absent")
	},
}
