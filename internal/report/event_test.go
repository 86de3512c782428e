package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host/memory"
)

func ending(code, name, cause string) Result {
	d := Result{Berth: &Details{Code: name}}
	d.ExitCode, d.Error = code, cause
	return d
}

func TestEvents(t *testing.T) {
	h := memory.New()
	start := time.Date(2026, 11, 21, 1, 2, 3, 4e6, time.Local)
	end := start.Add(1500 * time.Millisecond)
	const frame = `{"Timestamp":"2026-11-21 01:02:03.004","OperationId":"2026-11-21 01:02:%s","Version":"1.23","TaskName":"AKS.AKSNodeController.%s",` +
		`"EventLevel":"%s","Message":"%s | startTime=2026-11-21 01:02:03.004 endTime=2026-11-21 01:02:%s durationMs=%s","EventPid":"0","EventTid":"0"}`
	var got, want []string
	for _, c := range []struct {
		event Event
		want  string
	}{
		{Starting(TaskProvision, start), fmt.Sprintf(frame, "03.004", "Provision", "Informational", "Starting", "03.004", "0")},
		{Ended(TaskProvision, ending("0", "OK", ""), start, end), fmt.Sprintf(frame, "04.504", "Provision", "Informational", "Completed", "04.504", "1500")},
		{Ended(TaskProvisionWait, ending("51", "ERR_X", "no answer"), start, end), fmt.Sprintf(frame, "04.504", "ProvisionWait", "Error", "ERR_X: no answer", "04.504", "1500")},
		{Ended(TaskProvisionWait, ending("7", "", "a script"), start, end), fmt.Sprintf(frame, "04.504", "ProvisionWait", "Error", "exit code 7: a script", "04.504", "1500")},
	} {
		if err := WriteEvents(h, c.event); err != nil {
			t.Fatal(err)
		}
		want = append(want, c.want)
	}
	names, err := h.ReadDir(EventsDir) // one after the other, never one in another's place
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		b, err := h.ReadFile(EventsDir + "/" + n)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(b))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestEventsAreBounded: a machine on which nobody takes the events does not fill
// up, and what is there stays.
func TestEventsAreBounded(t *testing.T) {
	h := memory.New()
	for n := range 299 {
		h.Put(fmt.Sprintf("%s/%d.json", EventsDir, n), "{}", 0o644)
	}
	if err := WriteEvents(h, Starting(TaskProvision, time.Now())); err != nil {
		t.Fatal(err)
	}
	before, err := h.ReadDir(EventsDir)
	if err != nil || len(before) != 300 {
		t.Fatal(len(before), err)
	}
	if err := WriteEvents(h, Starting(TaskProvision, time.Now())); err == nil || !strings.Contains(err.Error(), "300 files") {
		t.Errorf("error %v", err)
	}
	if after, err := h.ReadDir(EventsDir); err != nil || !slices.Equal(before, after) {
		t.Errorf("%d files, %v", len(after), err)
	}
}

// TestEventIsWholeOrAbsent: what a killed process left is replaced, and under
// its last name an event never stands half written.
func TestEventIsWholeOrAbsent(t *testing.T) {
	h := memory.New()
	h.Put(EventsDir+"/.berth.provision.new", `{"Timest`, 0o600)
	if err := WriteEvents(h, Starting(TaskProvision, time.Now())); err != nil {
		t.Fatal(err)
	}
	names, err := h.ReadDir(EventsDir)
	if err != nil || len(names) != 1 || strings.HasPrefix(names[0], ".") {
		t.Errorf("files %v, %v", names, err)
	}
}

func TestEventMessageFits(t *testing.T) {
	at := time.Now()
	m := Ended(TaskProvision, ending("51", "ERR_X", strings.Repeat("é", 4000)), at, at).Message
	if len(m) > 3<<10 || !utf8.ValidString(m) || !strings.HasSuffix(m, "durationMs=0") || !strings.HasPrefix(m, "ERR_X: éé") {
		t.Errorf("%d bytes: …%s", len(m), m[len(m)-120:])
	}
}

// TestEventIsSmallEnough: the guest agent drops an event whose JSON is longer than 6
// KiB, and there a character may be six.
func TestEventIsSmallEnough(t *testing.T) {
	h, at := memory.New(), time.Now()
	if err := WriteEvents(h, Ended(TaskProvision, ending("51", "ERR_X", strings.Repeat("<", 4000)), at, at)); err != nil {
		t.Fatal(err)
	}
	names, err := h.ReadDir(EventsDir)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	b, err := h.ReadFile(EventsDir + "/" + names[0])
	if err != nil || len(b) > 6<<10 || len(b) < 3<<10 || !strings.Contains(string(b), "durationMs=0") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
