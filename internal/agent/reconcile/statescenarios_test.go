package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/paths"
)

// remembered are the files in which berth remembers something, with what is in them.
func (b *bench) remembered() map[string]string {
	out := map[string]string{}
	for p := range b.h.Tree(paths.StateDir) {
		if info, err := b.h.Lstat(p); err == nil && info.IsRegular() {
			out[p] = b.content(p)
		}
	}
	return out
}

// moments are when what berth remembers is damaged. Each leaves the reconciler stopped,
// a machine that was asked for "one", and /etc/theirs over somebody else's file.
var moments = map[string]func(b *bench){
	"at rest": func(b *bench) { b.pass(time.Minute) },
	"while a document waits": func(b *bench) {
		b.delay = time.Hour
		b.give("file /etc/a two", "unit u.service /etc/a")
	},
	"half-way": func(b *bench) {
		b.h.Behave("v.service", fails)
		b.give("file /etc/a one", "unit u.service /etc/a", "file /etc/theirs ours", "file /etc/b x", "unit v.service /etc/b")
	},
	"taken back": func(b *bench) {
		b.h.Behave("u.service", func(s memory.Start) memory.Outcome {
			if b.content("/etc/a") == "bad" {
				return fails(s)
			}
			return memory.Outcome{}
		})
		b.pass(time.Minute)
		b.give("file /etc/a bad", "unit u.service /etc/a", "file /etc/theirs ours")
	},
	"on trial": func(b *bench) {
		if err := trial.Arm(b.h, &trial.Note{Owner: desired.OwnerOSC, Sum: "x", Units: []string{"u.service"}}, "/berth", nil); err != nil {
			b.t.Fatal(err)
		}
	},
	"another source's trial": func(b *bench) { b.cutOffOf(desired.OwnerAKS) },
}

func fails(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} }

// TestDamagedMemory: whatever is lost of what berth remembers, and whenever, the next
// document is in force, what it asks for runs, and no file of somebody else is lost.
func TestDamagedMemory(t *testing.T) {
	damages := map[string]func(b *bench, p, text string){
		"deleted": func(b *bench, p, _ string) { _ = b.h.Remove(p) },
		"emptied": func(b *bench, p, _ string) { b.h.Overwrite(p, "") },
		"cut":     func(b *bench, p, text string) { b.h.Overwrite(p, text[:len(text)/2]) },
	}
	points := 0
	for moment, arrange := range moments {
		for damage, do := range damages {
			for n := 0; ; n++ {
				more := false
				t.Run(fmt.Sprintf("%s, %d %s", moment, n, damage), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := newBench(t)
						more = b.damaged(n, arrange, do)
					})
				})
				if !more {
					break
				}
				points++
			}
		}
	}
	if points < 10 {
		t.Errorf("%d points", points)
	}
}

// damaged plays one damage, to the n-th file; false where there are not so many.
func (b *bench) damaged(n int, arrange func(*bench), do func(b *bench, p, text string)) bool {
	b.h.Put("/etc/theirs", "theirs", 0o644)
	b.start()
	b.give("file /etc/a one", "unit u.service /etc/a", "file /etc/theirs ours")
	arrange(b)
	b.stop()
	files := b.remembered()
	names := slices.Sorted(maps.Keys(files))
	if n >= len(names) {
		return false
	}
	do(b, names[n], files[names[n]])
	b.delay = 0
	b.start()
	defer b.stop()
	next := []string{"file /etc/a three", "unit u.service /etc/a"}
	b.give(next...)
	b.pass(10 * time.Minute)
	b.wantFile("/etc/a", "three")
	b.wantApplied(next...)
	if st := b.h.Units()["u.service"]; st.ActiveState != "active" || b.isOnTrial() || b.lastCondition() != "True Applied" {
		b.t.Errorf("%s: %s, on trial %v, %v", names[n], st.ActiveState, b.isOnTrial(), b.events)
	}
	whose := strings.HasPrefix(names[n], ledger.OriginalsDir) || strings.Contains(names[n], "ledger")
	if is := b.content("/etc/theirs"); is != "theirs" && (!whose || is != "ours") {
		b.t.Errorf("%s: somebody else's file is %q", names[n], is)
	}
	return true
}

// TestAnOlderMemory: what berth remembers is that of an earlier document, as after a
// repair of the file system. Nothing of the document in force is undone, nor restarted.
func TestAnOlderMemory(t *testing.T) {
	for name, away := range map[string]bool{"the Node first": false, "the Secret first": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.start()
				b.give("file /etc/a one", "unit u.service /etc/a")
				older := b.remembered()
				two := []string{"file /etc/a two", "unit u.service /etc/a", "file /etc/b x"}
				b.give(two...)
				b.stop()
				for p := range b.remembered() {
					_ = b.h.Remove(p)
				}
				for p, text := range older {
					b.h.Put(p, text, 0o600)
				}
				before, starts := b.h.Tree("/etc"), b.restarts("u.service")
				b.delay = 5 * time.Minute
				node := b.node
				if away {
					b.setNode(nil)
				}
				b.start()
				b.give(two...)
				b.setNode(node)
				b.r.SeeNode()
				synctest.Wait()
				b.pass(time.Minute)
				if d := cmp.Diff(before, b.h.Tree("/etc")); d != "" {
					t.Error(d)
				}
				if n := b.restarts("u.service"); n != starts {
					t.Errorf("%d starts, want %d", n, starts)
				}
				b.wantApplied(two...)
				b.stop()
			})
		})
	}
}

// TestBackFromAnywhere: a document that fails, or is cut off, at any effect is replaced by
// the one before: the machine is exactly as that left it.
func TestBackFromAnywhere(t *testing.T) {
	one := []string{"file /etc/a one", "unit u.service /etc/a", "file /etc/theirs ours"}
	two := []string{"file /etc/a two", "unit u.service /etc/a", "file /etc/new/b x", "unit v.service /etc/new/b", "file /etc/others ours"}
	for kind, name := range map[effect.Kind]string{effect.Fail: "fails", effect.StopAfter: "is cut off"} {
		for n, more := 1, true; more; n++ {
			t.Run(fmt.Sprintf("%s at effect %d", name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t)
					b.h.Put("/etc/theirs", "theirs", 0o640)
					b.h.Put("/etc/others", "others", 0o640)
					b.start()
					b.give(one...)
					b.pass(time.Minute)
					before := b.h.Tree("/etc")
					in := effect.Inject(b.h, effect.Plan{{At: n, Kind: kind, Err: errors.New("no space left on device")}})
					b.engineHost = in
					b.give(two...)
					more = in.Hit() != nil
					b.stop()
					b.h.Kill()
					b.engineHost = nil
					b.start()
					b.give(one...)
					b.pass(10 * time.Minute)
					if d := cmp.Diff(before, b.h.Tree("/etc")); d != "" {
						t.Error(d)
					}
					units := b.h.Units()
					if units["u.service"].ActiveState != "active" || units["v.service"].ActiveState == "active" || b.isOnTrial() {
						t.Errorf("%+v, on trial %v", units, b.isOnTrial())
					}
					b.wantApplied(one...)
					b.stop()
				})
			})
		}
	}
}

// machineOf is where engines work.
func (b *bench) machineOf() host.Host {
	if b.engineHost != nil {
		return b.engineHost
	}
	return b.h
}
