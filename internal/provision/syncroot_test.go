package provision

import (
	"context"
	"errors"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// slowDisk has much to write.
type slowDisk struct {
	host.Host
	synced  chan string
	release chan struct{}
	err     error
}

func (d slowDisk) SyncFS(dir string) error {
	d.synced <- dir
	<-d.release
	return d.err
}

// TestEarlierWritesAreMadeDurable: beside everything else, and before success is
// told.
func TestEarlierWritesAreMadeDurable(t *testing.T) {
	h := machineOf(`{}`)
	disk := slowDisk{h, make(chan string, 1), make(chan struct{}), nil}
	o := options(disk)
	apply := o.Apply
	o.Apply = func(ctx context.Context, st *desired.State, ob converge.Observer) (*converge.Result, error) {
		if dir := <-disk.synced; dir != "/" {
			t.Errorf("synced %s", dir)
		}
		return apply(ctx, st, ob)
	}
	o.Await = func(_ context.Context, _ *desired.State, to Milestone, reached func(Milestone)) error {
		reached(to) // nothing on the way to the node waits for the disk
		if _, err := h.Lstat(report.SentinelPath); err == nil {
			t.Error("success is told before it is durable")
		}
		close(disk.release)
		return nil
	}
	if code := Provision(t.Context(), o); code != 0 {
		t.Fatalf("code %d", code)
	}
	line, err := report.LoadTimeline(h, report.TimelinePath)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range line.Spans {
		if s.Verb == "sync" && s.ID == "root file system" && !s.End.IsZero() {
			return
		}
	}
	t.Errorf("the timeline does not show it: %v", line.Spans)
}

// TestFailureDoesNotWaitForTheDisk: nor does a disk that fails make a failure.
func TestFailureDoesNotWaitForTheDisk(t *testing.T) {
	disk := slowDisk{machineOf(`{}`), make(chan string, 2), make(chan struct{}), errors.New("no such device")}
	o := options(disk)
	o.Refused = &exitcode.Error{Number: 250, During: "read --nbc-cmd", Err: errors.New("not supported")}
	if code := Provision(t.Context(), o); code != 250 { // hangs if it waits
		t.Errorf("code %d", code)
	}
	close(disk.release)
	if code := Provision(t.Context(), options(disk)); code != 0 {
		t.Errorf("code %d", code)
	}
}
