package reconcile

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/host/memory"
)

// documentScenarios are documents that come and go.
var documentScenarios = map[string]func(b *bench){
	"what comes ahead of a document comes before its first change": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.give("file /etc/a two")
		if d := cmp.Diff([]string{"absent", "one"}, b.ahead); d != "" {
			b.t.Error(d)
		}
	},
	"the first document is taken at once": func(b *bench) {
		b.delay = time.Hour
		b.start()
		b.give("file /etc/a one")
		b.wantFile("/etc/a", "one")
		b.wantApplied("file /etc/a one")
		if b.node.Labels["l"] != "v" || b.count("OSCApplied") != 1 || b.joined == 0 || b.lastCondition() != "True Applied" {
			b.t.Error(b.node.Labels, b.events, b.joined, b.conditions)
		}
	},
	"what has no effect is told once": func(b *bench) {
		b.start()
		b.give("file /etc/a one", "note a", "note b")
		b.give("file /etc/a two", "note a", "note b")
		b.give("file /etc/a three", "note a")
		var got []string
		for _, e := range b.told() {
			if text, ok := strings.CutPrefix(e, "OSCNotes "); ok {
				got = append(got, text)
			}
		}
		if diff := cmp.Diff([]string{"a has no effect; b has no effect", "a has no effect"}, got); diff != "" {
			b.t.Error(diff)
		}
	},
	"a full disk takes no document, and the last one stays": func(b *bench) {
		full := false
		b.engineHost = refusing{b.h, &full}
		b.start()
		b.give("file /etc/a one", "file /etc/b one")
		b.set(&full, true)
		b.give("file /etc/a two", "file /etc/c two")
		b.pass(time.Minute)
		b.wantFile("/etc/a", "one")
		b.wantFile("/etc/b", "one")
		b.wantApplied("file /etc/a one", "file /etc/b one")
		said := b.Get().Status.Conditions[0].Message
		if b.lastCondition() != "False ApplyFailed" || !strings.Contains(said, "/etc/") || !strings.Contains(said, "no space left on device") {
			b.t.Errorf("%q: %s", b.lastCondition(), said)
		}
		if _, err := b.h.Lstat("/etc/c"); err == nil {
			b.t.Error("a file of the document is there")
		}
		b.set(&full, false)
		b.pass(10 * time.Minute)
		b.wantApplied("file /etc/a two", "file /etc/c two")
		b.wantFile("/etc/c", "two")
	},
	"the jobs of a document are told with the published reasons": func(b *bench) {
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.give("file /etc/a two", "unit u.service /etc/a")
		b.give("file /etc/a two")
		b.h.Behave("v.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} })
		b.give("file /etc/a two", "unit v.service /etc/a")
		var got []string
		for _, e := range b.told() {
			if strings.HasPrefix(e, "SystemDUnit") {
				got = append(got, strings.SplitAfter(e, " failed: ")[0])
			}
		}
		want := []string{"SystemDUnitStart started u.service, as the document asks for", "SystemDUnitRestart restarted u.service, as the document asks for",
			"SystemDUnitStop stopped u.service, as the document asks for", "SystemDUnitStart start of v.service failed: "}
		if d := cmp.Diff(want, got); d != "" {
			b.t.Error(d)
		}
	},
	"of a Node that is not there no job is told": func(b *bench) {
		b.setNode(nil)
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.wantFile("/etc/a", "one")
		if b.count("SystemDUnitStart") != 0 {
			b.t.Error(b.told())
		}
	},
	"a later one waits its time": func(b *bench) {
		b.delay = time.Hour
		b.start()
		b.give("file /etc/a one")
		b.give("file /etc/a two")
		b.pass(59 * time.Minute)
		b.wantFile("/etc/a", "one")
		b.pass(2 * time.Minute)
		b.wantFile("/etc/a", "two")
		b.wantApplied("file /etc/a two")
	},
	"a restart does not cut the wait short, nor begin it anew": func(b *bench) {
		b.delay = time.Hour
		b.start()
		b.give("file /etc/a one")
		b.give("file /etc/a two")
		b.pass(40 * time.Minute)
		b.stop()
		b.start()
		b.give("file /etc/a two")
		b.wantFile("/etc/a", "one")
		b.pass(21 * time.Minute)
		b.wantFile("/etc/a", "two")
	},
	"what waits is replaced by what comes after": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.delay = time.Hour
		b.give("file /etc/a two")
		b.give("file /etc/a three")
		b.pass(61 * time.Minute)
		b.wantFile("/etc/a", "three")
	},
	"what was withdrawn before its time waits anew when it is asked for again": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.delay = time.Hour
		b.give("file /etc/a two")
		b.pass(time.Minute)
		b.give("file /etc/a one")
		b.stop()
		b.start()
		b.pass(2 * time.Hour)
		b.give("file /etc/a two")
		b.pass(59 * time.Minute)
		b.wantFile("/etc/a", "one")
		b.pass(2 * time.Minute)
		b.wantFile("/etc/a", "two")
	},
	"a full disk keeps no turn of what is withdrawn": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.set(&b.turn, false)
		b.r.SeeSecret(serial("file /etc/a two"))
		synctest.Wait()
		b.released = 0
		b.set(&b.unrecorded, true)
		b.give("file /etc/a one")
		if b.released == 0 {
			b.t.Error("the turn is not given on")
		}
	},
	"a document that could not be noted is noted later": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		b.set(&b.unrecorded, true)
		b.give("file /etc/a two")
		b.set(&b.unrecorded, false)
		b.pass(10 * time.Minute)
		if got := b.r.record.Checksum; got != "sum of file /etc/a two" {
			b.t.Errorf("noted is %q", got)
		}
		if b.lastCondition() != "True Applied" {
			b.t.Errorf("the condition is %q", b.lastCondition())
		}
	},
	"what is no more asked for goes": func(b *bench) {
		b.h.Put("/etc/b", "theirs", 0o644)
		b.start()
		b.give("file /etc/a one", "file /etc/b ours")
		b.give("file /etc/c one")
		b.wantFile("/etc/a", "absent")
		b.wantFile("/etc/b", "theirs")
	},
	"nothing restarts that did not change": func(b *bench) {
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a", "file /etc/b one")
		b.give("file /etc/a one", "unit u.service /etc/a", "file /etc/b two")
		b.stop()
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a", "file /etc/b two")
		b.pass(25 * time.Minute)
		if n := b.restarts("u.service"); n != 1 {
			b.t.Errorf("%d starts: %v", n, b.h.Jobs())
		}
	},
	"a trigger restarts its unit": func(b *bench) {
		b.start()
		b.give("file /etc/a one", "unit u.service /etc/a")
		b.give("file /etc/a two", "unit u.service /etc/a")
		if n := b.restarts("u.service"); n != 2 {
			b.t.Errorf("%d starts", n)
		}
	},
	"a time that lies ahead is now": func(b *bench) {
		b.delay = time.Hour
		b.start()
		b.give("file /etc/a one")
		b.give("file /etc/a two")
		b.stop()
		ahead, err := json.Marshal(record{Seen: "sum of file /etc/a two", SeenAt: b.h.Now().AddDate(5, 0, 0)})
		if err != nil {
			b.t.Fatal(err)
		}
		b.h.Put(RecordPath, string(ahead), 0o600)
		b.start()
		b.give("file /etc/a two")
		b.wantFile("/etc/a", "one")
		b.pass(61 * time.Minute)
		b.wantFile("/etc/a", "two")
	},
	"the clock jumps": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		for n, by := range []time.Duration{time.Hour, -time.Hour, 40 * 24 * time.Hour, -40 * 24 * time.Hour} {
			b.h.Advance(by)
			b.h.Overwrite("/etc/a", "edited")
			synctest.Wait()
			b.wantFile("/etc/a", []string{"one", "0", "1", "2"}[n])
			b.delay = 10 * time.Minute
			b.give("file /etc/a " + strconv.Itoa(n))
			b.h.Advance(-by)
			for range 21 { // a clock that was ahead when it came has it wait once more
				b.pass(time.Minute)
			}
			b.wantFile("/etc/a", strconv.Itoa(n))
			b.wantApplied("file /etc/a " + strconv.Itoa(n))
		}
	},
	"a Secret without a document, or without the Secret": func(b *bench) {
		b.start()
		b.give("file /etc/a one")
		for range 2 {
			b.r.SeeSecret(nil)
		}
		b.r.SeeSecret(&core.Secret{})
		synctest.Wait()
		if b.count("NoDocument") != 2 {
			b.t.Error(b.told())
		}
		b.wantFile("/etc/a", "one")
		b.wantApplied("file /etc/a one")
	},
}
