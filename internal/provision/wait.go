package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/report"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// waitMargin is what Wait gives a run beyond its own deadline.
const waitMargin = time.Minute

// WaitOptions are what Wait needs.
type WaitOptions struct {
	Host    host.Host
	Config  string
	Version string
	Out     io.Writer
}

// Wait waits until provisioning has ended, prints the result, at most
// report.Limit bytes, and returns the provisioning exit code. It ends after
// cse_timeout and a minute at the latest, with a result made from the unit's
// state and code 124. The document may come while it waits: it counts where it
// allows more than is allowed without one. The error is one of printing. An event
// tells of its start and one of its end; where that can't be, nothing can be done
// about it.
func Wait(ctx context.Context, o WaitOptions) (int, error) {
	start := o.Host.Now()
	_ = report.WriteEvents(o.Host, report.Starting(report.TaskProvisionWait, start))
	d, err := o.wait(ctx)
	_ = report.WriteEvents(o.Host, report.Ended(report.TaskProvisionWait, d, start, o.Host.Now()))
	return exitCode(d), err
}

// wait prints a result and returns it.
func (o WaitOptions) wait(ctx context.Context) (report.Result, error) {
	if _, err := host.MkdirAll(o.Host, report.SentinelDir); err != nil {
		return o.giveUp(ctx, err)
	}
	if _, err := host.MkdirAll(o.Host, paths.RunDir); err != nil {
		return o.giveUp(ctx, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Before the first look: no change is missed.
	changes, err := o.Host.Watch(ctx, host.Watched{Names: []string{report.SentinelDir, paths.RunDir}})
	switch {
	case ctx.Err() != nil:
		return o.giveUp(ctx, ending(ctx))
	case err != nil:
		return o.giveUp(ctx, err)
	}
	start, most := o.Host.Now(), time.Duration(0)
	for {
		a, again := o.look(ctx, o.Host.Now().Sub(start))
		if a.ended {
			return o.finish(ctx, a)
		}
		most = max(most, terms(o.Host, o.Config).Timeout+waitMargin) // the document may come meanwhile
		left := most - o.Host.Now().Sub(start)
		if left <= 0 {
			return o.giveUp(ctx, late(a))
		}
		select {
		case _, more := <-changes:
			if !more {
				changes = nil
			}
		case <-time.After(min(again, left)):
		case <-ctx.Done():
			return o.giveUp(ctx, ending(ctx))
		}
	}
}

// look finds the attempt whose result is to be printed; where none has ended yet,
// it says after what time to look again, and what could not be read. A run is looked for first: the result
// that is found then is not older than that it goes on.
func (o WaitOptions) look(ctx context.Context, waited time.Duration) (a attempt, again time.Duration) {
	if !identified(ctx, o.Host, waited) {
		return attempt{}, identifyEvery
	}
	_, underway := Underway(o.Host)
	a, err := lastAttempt(o.Host, InstanceID(o.Host), terms(o.Host, o.Config).ImageBuild)
	switch {
	case err != nil:
		return attempt{problem: err}, lookEvery
	case !a.ended:
		return attempt{}, lookEvery
	case underway || o.comesAgain(ctx, a):
		return attempt{}, identifyEvery
	}
	return a, 0
}

// comesAgain says whether an interrupted run goes on: its unit runs it again, or
// has not started yet in this boot.
func (o WaitOptions) comesAgain(ctx context.Context, a attempt) bool {
	if !a.interrupted() || !there(o.Host, o.Config) {
		return false
	}
	s, err := o.Host.Unit(ctx, report.ServiceUnit)
	switch {
	case errors.Is(err, host.ErrNoSystemd):
		return false
	case err != nil: // so early in the boot that there is nobody to ask
		return true
	case s.LoadState != "loaded", s.NRestarts > 0: // the run that systemd starts by itself keeps the result
		return false
	case !s.ConditionTime.IsZero() && !s.ConditionResult: // it had its turn in this boot
		return false
	case s.ExecMainStart.IsZero():
		return strings.HasPrefix(s.UnitFileState, "enabled") && a.bootID != report.BootID(o.Host)
	}
	return s.MainPID != 0 || slices.Contains([]string{"activating", "deactivating"}, s.ActiveState)
}

const (
	// identifyEvery is how often Wait asks whether cloud-init has looked, and
	// whether a run comes: what becomes of a unit is no event in a directory.
	identifyEvery = 100 * time.Millisecond
	// lookEvery is how often Wait looks without an event: none comes any more from
	// a directory that was removed, or that something was mounted over.
	lookEvery = 5 * time.Second
)

var (
	errNoResult = errors.New("provisioning has not ended in time")
	errStopped  = errors.New("the wait was told to stop; provisioning goes on")
)

// late is why the time was over: nothing has ended, as far as the last look could tell.
func late(a attempt) error {
	if a.problem == nil {
		return errNoResult
	}
	return fmt.Errorf("%w: %w", errNoResult, a.problem)
}

// ending is why the wait ends without a result.
func ending(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), exitcode.ErrInterrupted) {
		return errStopped
	}
	return context.Cause(ctx)
}

func (o WaitOptions) finish(ctx context.Context, a attempt) (report.Result, error) {
	if a.problem != nil {
		return o.giveUp(ctx, fmt.Errorf("%s says that provisioning has ended, but its result can't be read: %w", a.sentinel, a.problem))
	}
	out := append(bytes.TrimSpace(a.raw), '\n')
	if len(out) > report.Limit {
		short, err := report.Encode(a.document)
		if err != nil {
			return a.document, err
		}
		out = short
	}
	_, err := o.Out.Write(out)
	return a.document, err
}

// giveUp prints a result that says why there is none, and how the unit is.
func (o WaitOptions) giveUp(ctx context.Context, why error) (report.Result, error) {
	code := exitcode.ByNumber(exitcode.Timeout)
	d := report.Result{
		CSEStatus: nodeconfigutils.CSEStatus{
			ExitCode: strconv.Itoa(code.Number),
			Error:    fmt.Sprintf("%v; %s", why, unitState(ctx, o.Host)),
		},
		Berth: &report.Details{
			Version: o.Version, InstanceID: InstanceID(o.Host), Code: code.Name, Doing: "wait for " + report.SentinelPath,
			Hint: "Look at systemctl status " + report.ServiceUnit + " and at " + report.LogPath + ".",
		},
	}
	if errors.Is(why, fs.ErrPermission) {
		d.Berth.Hint = "Run it as root."
	}
	b, err := report.Encode(d)
	if err != nil {
		return d, err
	}
	_, err = o.Out.Write(b)
	return d, err
}

// unitState describes the unit that provisions, in half a line.
func unitState(ctx context.Context, h host.Systemd) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	s, err := h.Unit(ctx, report.ServiceUnit)
	switch {
	case errors.Is(err, host.ErrNoSystemd):
		return fmt.Sprintf("%s: %v", report.ServiceUnit, host.ErrNoSystemd)
	case err != nil:
		return fmt.Sprintf("%s: %v", report.ServiceUnit, err)
	case s.LoadState != "loaded":
		return fmt.Sprintf("%s is %s", report.ServiceUnit, s.LoadState)
	case s.ExecMainStart.IsZero():
		return fmt.Sprintf("%s is %s (%s) and was never started", report.ServiceUnit, s.ActiveState, s.SubState)
	}
	return fmt.Sprintf("%s is %s (%s), result %s, started %s, %d restarts", report.ServiceUnit, s.ActiveState, s.SubState,
		s.Result, report.SystemdTime(s.ExecMainStart), s.NRestarts)
}
