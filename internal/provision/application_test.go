package provision

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/report"
)

// TestApplication: what was kept, or what kept the run from its end, stands in the timeline
// with the code of the command.
func TestApplication(t *testing.T) {
	const p = "/etc/x"
	h, told := memory.New(), ""
	apply := func(ctx context.Context, files ...desired.Resource) (bool, error) {
		st := &desired.State{Owner: desired.OwnerNode}
		st.Add(files...)
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		told = ""
		return Application{
			Host: h, ThisMachine: true, Command: "berth apply", BeginJoin: func(context.Context, *desired.State) {},
			Engine: converge.New(converge.Options{Host: h, Command: "test"}), Doing: func() string { return "" },
			Say: func(line string) { told += line + "\n" },
		}.Run(ctx, st)
	}
	code := func(want int) {
		t.Helper()
		if l, err := report.LoadTimeline(h, report.TimelinePath); err != nil || l.ExitCode != want {
			t.Errorf("%v, %v, want %d", l, err, want)
		}
	}
	if kept, err := apply(t.Context(), &desired.File{Path: p, Content: desired.Text("x"), Mode: 0o644, Life: desired.Managed}); kept || err != nil || !strings.Contains(told, "applied 1 change") {
		t.Fatalf("%t, %v: %s", kept, err, told)
	}
	code(0)
	h.Put(p, "somebody's", 0o644)
	if kept, err := apply(t.Context()); !kept || err != nil || !strings.Contains(told, "kept: ") {
		t.Fatalf("%t, %v: %s", kept, err, told)
	}
	code(exitcode.Kept)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exitcode.ErrInterrupted)
	if _, err := apply(ctx, &desired.File{Path: "/etc/y", Content: desired.Text("y"), Mode: 0o644, Life: desired.Managed}); !errors.Is(err, exitcode.ErrInterrupted) {
		t.Error(err)
	}
}
