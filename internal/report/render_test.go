package report

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func sampleTimeline() *Timeline {
	start := time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)
	at := func(ms float64) time.Time { return start.Add(time.Duration(ms * float64(time.Millisecond))) }
	return &Timeline{
		Command: "berth provision", Version: "202611.21.0", InstanceID: "vm-1", Start: start, End: at(900), ExitCode: 34, Milestone: "applied",
		Spans: []converge.Span{
			{ID: "unit:kubelet.service", Verb: "start", Phase: "commit", Start: at(350), End: at(880), Waited: "unit:containerd.service", Error: "job result <failed>"},
			{ID: "check:apiserver", Verb: "check", Phase: "stage", Start: at(20), End: at(34)},
			{ID: "artifact:kubernetes", Verb: "fetch", Phase: "stage", Start: at(21), End: at(300), Detail: "61 MiB"},
			{ID: "file:/etc/systemd/system/kubelet.service.d/10-containerd-base-flag.conf", Verb: "create", Phase: "stage", Start: at(22), End: at(22.02)},
			{ID: "unit:containerd.service", Verb: "start", Phase: "commit", Start: at(301), End: at(349)},
			{ID: "for registered", Verb: "wait", Phase: "wait", Start: at(880)},
		},
	}
}

func TestTimelineText(t *testing.T) {
	var b strings.Builder
	if err := sampleTimeline().WriteText(&b, 120); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "timeline.txt", b.String())
}

func TestTimelineSVG(t *testing.T) {
	var b strings.Builder
	if err := sampleTimeline().WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "timeline.svg", b.String())
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(strings.ReplaceAll(b.String(), "http://www.w3.org/2000/svg", ""), "http") {
		t.Error("the picture needs another file")
	}
}

func TestTimelineSurvivesTheDisk(t *testing.T) {
	h := memory.New()
	want := sampleTimeline()
	if err := want.Save(h, TimelinePath); err != nil {
		t.Fatal(err)
	}
	got, err := LoadTimeline(h, TimelinePath)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestTimelineOfNoTime(t *testing.T) {
	var b strings.Builder
	tl := &Timeline{Spans: []converge.Span{{ID: "a:b", Verb: "set"}}}
	if err := errors.Join(tl.WriteText(&b, 0), tl.WriteSVG(&b)); err != nil {
		t.Error(err)
	}
}

func FuzzParseTimeline(f *testing.F) {
	f.Add([]byte(`{"start":"2026-11-21T01:02:03Z","end":"2026-11-21T01:02:04Z","spans":[{"id":"a:b","start":"2026-11-21T01:02:03Z"}]}`))
	f.Add([]byte(`{"start":"0001-01-01T00:00:00Z","end":"9999-01-01T00:00:00Z","spans":[{"start":"9999-12-01T00:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		tl, err := ParseTimeline(b)
		if err != nil {
			return
		}
		if err := errors.Join(tl.WriteText(io.Discard, 80), tl.WriteSVG(io.Discard)); err != nil {
			t.Error(err)
		}
	})
}

func TestPlanText(t *testing.T) {
	p := &converge.Plan{
		Actions: []converge.Action{
			{ID: "file:/etc/x", Verb: "update", Reason: "content differs", Diff: "--- /etc/x\n+++ /etc/x\n-a\n+b\n", Disruption: converge.DisruptNone, Field: "some_field"},
			{ID: "unit:kubelet.service", Verb: "restart", Reason: "a trigger changed", Disruption: converge.DisruptRestart},
			{ID: "artifact:x", Verb: "fetch", Reason: "absent: /x", Blocked: "there is no address", Disruption: converge.DisruptNone, Field: "x_config"},
		},
		Deferred: []converge.Action{{ID: "sysctl:a.b", Verb: "set", Reason: "on first boot"}},
		Remarks:  []string{"this kernel has no a.c"},
		Kept:     []string{"/etc/y is no longer wanted and is kept: its content was changed"},
	}
	var b strings.Builder
	err := WritePlan(&b, p, []desired.FieldNote{{Path: "vm_size", Reason: "no GPU"}}, []string{"gpu_config"})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "plan.txt", b.String())
}

func TestTimes(t *testing.T) {
	at := time.Date(2026, 11, 1, 1, 27, 22, 0, time.UTC).Local()
	zone := at.Format("MST")
	if got, want := DateTime(at), at.Format("Mon Jan")+" "+at.Format("_2 15:04:05")+" "+zone+" 2026"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := SystemdTime(at), at.Format("Mon 2006-01-02 15:04:05 ")+zone; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLogContinuesTheFile(t *testing.T) {
	h := memory.New()
	h.Put(LogPath, strings.Repeat("old line\n", 300_000), 0o644)
	l, err := OpenLog(h, LogPath)
	if err != nil {
		t.Fatal(err)
	}
	l.Info("hello", "id", "file:/x", "phase", "stage", "ms", 0.0, "detail", "two\nlines")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := h.ReadFile(LogPath)
	if err != nil || len(b) > keptLog+1000 || !strings.HasPrefix(string(b), "old line\n") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if last := string(b[strings.LastIndex(string(b), "old line")+9:]); !strings.Contains(last, `"msg":"hello"`) || strings.Count(last, "\n") != 1 {
		t.Errorf("last: %s", last)
	}
	if tail := l.Tail(); !strings.HasSuffix(tail, " hello file:/x detail=two lines\n") {
		t.Errorf("tail: %q", tail)
	}
}

// TestLogStaysTheSameFile: what still writes to it, and whoever follows it, is
// not cut off.
func TestLogStaysTheSameFile(t *testing.T) {
	h := memory.New()
	first, err := OpenLog(h, LogPath)
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenLog(h, LogPath)
	if err != nil {
		t.Fatal(err)
	}
	second.Info("one")
	first.Info("two")
	b, err := h.ReadFile(LogPath)
	if err != nil || !strings.Contains(string(b), `"one"`) || !strings.Contains(string(b), `"two"`) {
		t.Errorf("%v: %s", err, b)
	}
	if info, err := h.Lstat(LogPath); err != nil || info.Mode != 0o644 {
		t.Errorf("mode %v, %v", info.Mode, err)
	}
}

// racing makes each directory that is looked for a moment before it is made.
type racing struct{ *memory.Host }

func (r racing) Lstat(p string) (host.Info, error) {
	i, err := r.Host.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		r.PutDir(p)
	}
	return i, err
}

func TestLogDirectoryThatTheAgentMakesToo(t *testing.T) {
	h := memory.New()
	if err := mkdirs(racing{h}, "/var/log/azure/aks"); err != nil {
		t.Error(err)
	}
}

func TestTailKeepsWholeLines(t *testing.T) {
	l := &tail{}
	for range 5000 {
		_, _ = l.Write([]byte("0123456789\n"))
	}
	if s := l.String(); len(s) > tailSize || !strings.HasPrefix(s, "0123456789\n") {
		t.Errorf("%d bytes: %.20q", len(s), s)
	}
}
