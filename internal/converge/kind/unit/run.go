package unit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/host"
)

// run is what all units of one run share.
type run struct {
	v       *kind.View
	systemd *systemd

	mu sync.Mutex
	// revive are units that ran and that may stop as a consequence.
	revive []string
	// watched are services that this run started and that count as up as soon as
	// their process exists.
	watched []host.UnitStatus
	// remarks are what the run says in the end.
	remarks []string
}

func runOf(v *kind.View) *run {
	return v.Shared("units", func() any {
		return &run{v: v, systemd: &systemd{v: v, asked: map[string]host.UnitStatus{}, since: map[string]host.UnitStatus{}}}
	}).(*run)
}

// remark adds to what the run says in the end.
func (r *run) remark(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remarks = append(r.remarks, text)
}

// comesBack notes a unit that is stopped and starts again in the end.
func (r *run) comesBack(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.revive, name) {
		r.revive = append(r.revive, name)
	}
}

// watch notes a service whose start says nothing of whether it works.
func (r *run) watch(st host.UnitStatus) {
	if !slices.Contains([]string{"simple", "exec", "idle"}, st.ServiceType) || !running(st) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched = append(r.watched, st)
}

// upFor is how long a service has to stay up, where systemd calls it started as
// soon as its process exists.
const upFor = 200 * time.Millisecond

// questions is how many units systemd is asked for at once.
const questions = 16

// stayUp looks whether such services are still up.
func (r *run) stayUp(ctx context.Context) error {
	var left time.Duration
	for _, was := range r.watched {
		if !was.ExecMainStart.IsZero() {
			left = max(left, min(upFor, upFor-r.v.Host.Now().Sub(was.ExecMainStart)))
		}
	}
	if left > 0 {
		if err := r.v.Host.Sleep(ctx, left); err != nil {
			return err
		}
	}
	g, down := errgroup.Group{}, make([]error, len(r.watched))
	g.SetLimit(questions)
	for i, was := range r.watched {
		g.Go(func() error { down[i] = r.stillUp(ctx, was); return nil })
	}
	_ = g.Wait()
	return errors.Join(down...)
}

func (r *run) stillUp(ctx context.Context, was host.UnitStatus) error {
	st, err := r.v.Host.State(ctx, was.Name)
	if err != nil {
		return err
	}
	result := cmp.Or(st.Result, "failed")
	switch {
	case st.NRestarts > was.NRestarts, pausing(st), st.ActiveState == "failed":
	case st.ActiveState == "inactive":
		result = "ended"
	default:
		return nil
	}
	return &kind.UnitError{Unit: was.Name, Err: fmt.Errorf("it started and ended again: %w", &host.JobError{Unit: was.Name, Job: "start", Result: result, Status: st})}
}
