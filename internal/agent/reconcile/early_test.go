package reconcile

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// unsteady is a machine on which something happens while it is waited for units to
// stay up.
type unsteady struct {
	host.Host
	meanwhile func()
}

// Sleep implements host.Clock. Time passes for the whole program.
func (u unsteady) Sleep(ctx context.Context, d time.Duration) error {
	time.Sleep(d)
	u.meanwhile()
	return u.Host.Sleep(ctx, d)
}

const earlyUnit = "unit u.service /etc/a"

// TestSaidBeforeUnitsStayUp: the checksum is on the Node as soon as all is done; the
// turn, the event and the condition wait until the units have stayed up.
func TestSaidBeforeUnitsStayUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.engineHost = unsteady{b.h, func() {}}
		b.start()
		defer b.stop()
		b.give("file /etc/a one")
		b.pass(time.Second)
		b.released = 0
		b.give("file /etc/a two", earlyUnit)
		b.wantApplied("file /etc/a two", earlyUnit)
		if b.released != 0 || b.count("OSCApplied") != 1 {
			t.Errorf("before units have stayed up: the turn given on %d times, %q", b.released, b.events)
		}
		b.pass(time.Second)
		b.wantApplied("file /etc/a two", earlyUnit)
		if b.released != 1 || b.count("OSCApplied") != 2 || b.lastCondition() != "True Applied" {
			t.Errorf("the turn given on %d times, %q, %q", b.released, b.events, b.conditions)
		}
	})
}

// TestTakenBackFromTheNode: where a unit does not stay up, the Node says the former
// checksum again, and the document is not said early a second time.
func TestTakenBackFromTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		crashes := true
		var said []string
		b.engineHost = unsteady{b.h, func() {
			said = append(said, b.Get().Annotations[AppliedAnnotation])
			if crashes {
				b.h.Crash("u.service", 1)
			}
		}}
		b.start()
		defer b.stop()
		b.give("file /etc/a one")
		b.give("file /etc/a two", earlyUnit)
		b.wantApplied("file /etc/a two", earlyUnit)
		b.pass(10 * time.Second)
		b.wantApplied("file /etc/a one")
		if b.count("OSCApplied") != 1 || b.lastCondition() != "False ApplyFailed" {
			t.Errorf("%q, %q", b.events, b.conditions)
		}
		if len(said) < 2 {
			t.Fatalf("tried %d times", len(said))
		}
		for _, s := range said[1:] {
			if s != "sum of file /etc/a one" {
				t.Errorf("while it was tried again the Node said %q", s)
			}
		}
		crashes = false
		b.pass(10 * time.Minute)
		b.wantApplied("file /etc/a two", earlyUnit)
		if b.count("OSCApplied") != 2 || b.lastCondition() != "True Applied" {
			t.Errorf("%q, %q", b.events, b.conditions)
		}
	})
}

// TestAUnitThatDoesNotStayUp keeps neither the agent of the document from coming, nor has it
// systemd read again and again what the others are defined by.
func TestAUnitThatDoesNotStayUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.engineHost = unsteady{b.h, func() { b.h.Crash("u.service", 1) }}
		b.ends = true
		b.start()
		defer b.stop()
		b.give("file /etc/a one", "unit v.service /etc/a")
		b.pass(time.Minute)
		b.give("file /etc/a two", "unit v.service /etc/a", earlyUnit, "agent two")
		b.pass(10 * time.Minute)
		b.wantFile("/etc/a", "two")
		if b.isOnTrial() || b.placed == 0 || b.lastCondition() != "False ApplyFailed" || strings.Contains(strings.Join(b.told(), "\n"), "systemd holds another definition") {
			t.Error(b.isOnTrial(), b.placed, b.told())
		}
	})
}

// TestFirstDocumentIsNotSaidEarly: there is nothing to go back to.
func TestFirstDocumentIsNotSaidEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.engineHost = unsteady{b.h, func() {}}
		b.start()
		defer b.stop()
		b.give("file /etc/a one", earlyUnit)
		if got := b.Get().Annotations[AppliedAnnotation]; got != "" {
			t.Errorf("before its unit has stayed up the Node says %q", got)
		}
		b.pass(time.Second)
		b.wantApplied("file /etc/a one", earlyUnit)
	})
}

// TestTrialIsNotSaidEarly: what may be taken back as a whole is not in force.
func TestTrialIsNotSaidEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.engineHost = unsteady{b.h, func() {}}
		b.start()
		defer b.stop()
		b.give("file /etc/a one", earlyUnit)
		b.pass(time.Minute)
		b.give("file /etc/a two", earlyUnit)
		for range 4 {
			b.wantApplied("file /etc/a one", earlyUnit)
			b.pass(time.Second)
		}
		b.pass(10 * time.Second)
		b.wantApplied("file /etc/a two", earlyUnit)
	})
}

// TestTakenBackAfterAKill: a process that was killed before the units had stayed up left
// the checksum on the Node. The next one, whose try fails, takes it back, also where it
// sees the Node last.
func TestTakenBackAfterAKill(t *testing.T) {
	for name, late := range map[string]bool{"the Node first": false, "the Secret first": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.engineHost = unsteady{b.h, func() {}}
				b.start()
				b.give("file /etc/a one")
				two := []string{"file /etc/a two", earlyUnit}
				b.give(two...)
				b.wantApplied(two...)
				b.stop()
				b.h.Crash("u.service", 1)
				b.h.Behave("u.service", fails)
				node := b.node
				if late {
					b.setNode(nil)
				}
				b.start()
				defer func() { b.stop() }()
				b.give(two...)
				b.pass(5 * time.Second)
				b.setNode(node)
				b.r.SeeNode()
				b.pass(time.Second)
				b.wantApplied("file /etc/a one")
				if b.count("OSCApplied") != 1 || b.lastCondition() != "False ApplyFailed" {
					t.Errorf("%q, %q", b.events, b.conditions)
				}
				b.h.Behave("u.service", func(memory.Start) memory.Outcome { return memory.Outcome{} })
				b.pass(10 * time.Minute)
				b.wantApplied(two...)
				if b.count("OSCApplied") != 2 || b.lastCondition() != "True Applied" {
					t.Errorf("%q, %q", b.events, b.conditions)
				}
			})
		})
	}
}

// TestWhatTheNodeSaysOfOthersStays: a checksum that is not that of the document which
// failed is not berth's to take back.
func TestWhatTheNodeSaysOfOthersStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		b.give("file /etc/a one")
		b.stop()
		b.node.Annotations[AppliedAnnotation] = "another"
		b.h.Behave("u.service", fails)
		b.start()
		defer b.stop()
		b.give("file /etc/a two", earlyUnit)
		b.pass(5 * time.Second)
		if is := b.Get().Annotations[AppliedAnnotation]; is != "another" {
			t.Errorf("the Node says %q", is)
		}
	})
}

// archive is a machine on which something happens when a document is about to be kept as
// the last good one.
type archive struct {
	host.Host
	first func() error
}

// Create implements host.FS.
func (k archive) Create(p string) (host.File, error) {
	if strings.HasPrefix(p, trial.Dir+"/") {
		if err := k.first(); err != nil {
			return nil, err
		}
	}
	return k.Host.Create(p)
}

// TestSaidBeforeItIsKept: whoever waits for the checksum does not wait for the copy of the
// document that berth keeps. Where that can't be written the Node says the former one again.
func TestSaidBeforeItIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		full := error(nil)
		var said []string
		b.engineHost = archive{b.h, func() error {
			time.Sleep(time.Millisecond)
			said = append(said, b.Get().Annotations[AppliedAnnotation])
			return full
		}}
		b.start()
		defer b.stop()
		b.give("file /etc/a one")
		b.pass(time.Second)
		b.give("file /etc/a two")
		b.pass(time.Second)
		b.wantApplied("file /etc/a two")
		full = syscall.ENOSPC
		b.give("file /etc/a three")
		b.pass(time.Millisecond)
		b.wantApplied("file /etc/a two")
		if b.count("OSCApplied") != 2 || b.lastCondition() != "False ApplyFailed" {
			t.Errorf("%q, %q", b.events, b.conditions)
		}
		full = nil
		b.pass(10 * time.Minute)
		b.wantApplied("file /etc/a three")
		want := []string{"", "sum of file /etc/a two", "sum of file /etc/a three"}
		if diff := cmp.Diff(want, said[:min(3, len(said))]); diff != "" {
			t.Errorf("when the documents were about to be kept the Node said (-want +got):\n%s", diff)
		}
	})
}
