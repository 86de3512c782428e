package report

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
)

func TestProgressOnATerminal(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, true, 40)
	start := time.Unix(0, 0)
	s := converge.Span{ID: "unit:kubelet.service", Verb: "start", Phase: "commit", Start: start}
	p.Observe(s)
	p.Say("between")
	s.End, s.Error = start.Add(time.Second), "no"
	p.Observe(s)
	want := "… start unit:kubelet.service\r\x1b[Kbetween\n… start unit:kubelet.service\r\x1b[Kstart unit:kubelet.service (1s) FAILED: no\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

// TestProgressTellsEachAction: what is prepared is told when it is done, once,
// and the engine's own steps are not told.
func TestProgressTellsEachAction(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, false, 0)
	at := time.Unix(0, 0)
	for _, s := range []converge.Span{
		{ID: "file:/etc/x", Verb: "create", Phase: "stage"},
		{ID: "unit:kubelet.service", Verb: "enable", Phase: "stage"},
		{ID: "artifact:runc", Verb: "fetch", Phase: "stage", Detail: "9 MiB"},
		{ID: "names", Verb: "update", Phase: "commit"},
		{ID: "unit:containerd.service", Verb: "start", Phase: "commit"},
		{ID: "file:/etc/y", Verb: "create", Phase: "stage", Error: converge.GivenUp},
		{ID: "enablement", Verb: "enable", Phase: "commit"},
	} {
		s.Start, s.End = at, at.Add(time.Millisecond)
		p.Observe(s)
	}
	want := "fetch artifact:runc (1ms) 9 MiB\ncreate file:/etc/x (1ms)\nstart unit:containerd.service (1ms)\nenable unit:kubelet.service (1ms)\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}
