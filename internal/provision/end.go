package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/nodegpu"
	"github.com/berth-dev/berth/internal/report"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// reportBudget bounds what is asked of the machine for the result.
const reportBudget = 5 * time.Second

// end turns the outcome into timeline, result, sentinel and event, and returns
// the exit code. It works with a context of its own: the run's may have ended.
func (r *run) end(ctx context.Context, outcome error) int {
	if outcome == nil {
		r.awaitSync()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportBudget)
	defer cancel()
	r.mu.Lock()
	step := r.step
	r.mu.Unlock()
	f := Explain(outcome)
	if outcome != nil && f.Doing == "" {
		f.Doing = step
	}
	r.tell(f, outcome)
	if err := r.saveTimeline(f); err != nil {
		r.log.Warn("no timeline", "error", err)
	}
	d := r.document(ctx, f)
	if err := report.WriteResult(ctx, r.Host, d, r.terms.ImageBuild); err != nil {
		r.log.Error("the disk takes no result", "error", err)
		r.say("the disk takes no result: " + err.Error())
	}
	r.withdraw() // now, not later: who waits for the result looks whether a run goes on
	r.Status(inShort(f, r.milestone))
	if err := converge.Safely(func() error { return r.aftermath(ctx, d) }); err != nil {
		r.log.Warn("the result is written, but not all that belongs to it is done", "error", err)
	}
	return f.Code.Number
}

// inShort is how a run ended, for a line.
func inShort(f report.Failure, s Milestone) string {
	if f.Code.Number == exitcode.OK {
		return "done, reached " + string(s)
	}
	return fmt.Sprintf("failed with %s (%d): %s", f.Code.Name, f.Code.Number, report.Sentence(f))
}

// rescue writes a result where the one that end makes can't be made: of what is
// known for certain, and no more.
func (r *run) rescue(ctx context.Context, p error) int {
	f := Explain(p)
	_ = converge.Safely(func() error { r.tell(f, p); return nil })
	d := report.Result{
		CSEStatus: nodeconfigutils.CSEStatus{ExitCode: strconv.Itoa(f.Code.Number), Error: report.Sentence(f)},
		Berth:     &report.Details{Version: r.Version, InstanceID: r.instance, Code: f.Code.Name, Hint: f.Hint},
	}
	if err := converge.Safely(func() error { return report.WriteResult(ctx, r.Host, d, r.terms.ImageBuild) }); err != nil {
		r.say("no result: " + err.Error())
	}
	r.withdraw()
	return f.Code.Number
}

func (r *run) tell(f report.Failure, outcome error) {
	took := r.Host.Now().Sub(r.Start).Round(time.Millisecond)
	if outcome == nil {
		r.log.Info("provisioning is done", "milestone", string(r.milestone), "took", took.String())
		r.say(fmt.Sprintf("provisioned in %s", took))
		return
	}
	attrs := []any{"code", f.Code.Number, "name", f.Code.Name, "doing", f.Doing, "field", f.Field, "cause", f.Cause, "hint", f.Hint}
	var p *converge.PanicError
	if errors.As(outcome, &p) {
		attrs = append(attrs, "stack", p.Stack)
	}
	r.log.Error("provisioning failed", attrs...)
	for _, line := range report.Explain(f) {
		r.say(line)
	}
}

func (r *run) saveTimeline(f report.Failure) error {
	r.mu.Lock()
	t := &report.Timeline{
		Command: r.Command, Version: r.Version, InstanceID: r.instance, Start: r.Start, End: r.Host.Now(),
		ExitCode: f.Code.Number, Milestone: string(r.milestone), Spans: slices.AppendSeq(slices.Clone(r.spans), maps.Values(r.doing)),
	}
	r.mu.Unlock()
	return t.Save(r.Host, report.TimelinePath)
}

func (r *run) document(ctx context.Context, f report.Failure) report.Result {
	start := report.DateTime(r.Start)
	d := report.Result{
		CSEStatus: nodeconfigutils.CSEStatus{
			ExitCode: strconv.Itoa(f.Code.Number), Output: r.log.Tail(), Error: report.Sentence(f),
			ExecDuration: strconv.Itoa(int(r.Host.Now().Sub(r.Start).Seconds())), CSEStartTime: start,
		},
		Berth: &report.Details{
			Version: r.Version, InstanceID: r.instance, Code: f.Code.Name, Doing: f.Doing, Field: f.Field, Timeline: report.TimelinePath,
		},
	}
	d.BootDatapoints.CSEStartTime = start
	report.ReadBoot(ctx, r.Host, kubelet.Unit).Into(&d)
	if f.Code.Number != exitcode.OK {
		d.Berth.Hint = f.Hint
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d.Berth.Milestone, d.Berth.Unhandled, d.Berth.Unverified = string(r.milestone), r.unhandled, r.unverified
	return d
}

// aftermath is what comes after the result, when nobody waits any more:
// telemetry, known names, old results that go, and what programs hold.
func (r *run) aftermath(ctx context.Context, d report.Result) error {
	err := errors.Join(r.tellAgent(d), report.LinkLogs(r.Host), prune(r.Host))
	if d.ExitCode == "0" && nodegpu.RestartOwed(r.Host) {
		err = errors.Join(err, r.restart(ctx))
	}
	if r.state != nil && !r.terms.ImageBuild {
		err = errors.Join(err, r.Remember(ctx, r.state))
	}
	return err
}

// tellAgent has the guest agent know of the run and of each of its actions: first what
// counts most, for there may not be room for all.
func (r *run) tellAgent(d report.Result) error {
	now := r.Host.Now()
	all := []report.Event{report.Ended(report.TaskProvision, d, r.Start, now), report.Ended(report.TaskRun, d, r.Start, now)}
	r.mu.Lock()
	all = append(all, report.DidAll(r.spans)...)
	r.mu.Unlock()
	return report.WriteEvents(r.Host, all...)
}
