package reconcile

import (
	"errors"
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// job is what systemd is asked to do with a unit; the reasons of events are the published
// ones.
type job struct{ reason, name, done string }

var jobs = map[converge.Verb]job{
	converge.VerbStart:   {"SystemDUnitStart", "start", "started"},
	converge.VerbStop:    {"SystemDUnitStop", "stop", "stopped"},
	converge.VerbRestart: {"SystemDUnitRestart", "restart", "restarted"},
}

// tellJobs tells of each job that a document brought about, and how it ended. Where there
// is no Node yet there is nothing that it could be told of.
func (r *Reconciler) tellJobs(res *converge.Result, err error) {
	if r.o.Node.Get() == nil {
		return
	}
	for _, a := range res.Plan.Actions {
		unit, isUnit := strings.CutPrefix(string(a.ID), string(desired.UnitID("")))
		j, isJob := jobs[a.Verb]
		if !isUnit || !isJob {
			continue
		}
		switch cause, ran := ended(res, err, a); {
		case !ran:
		case cause != "":
			r.o.Events.Warning(j.reason, j.name+" of "+unit+" failed: "+cause)
		default:
			r.o.Events.Normal(j.reason, j.done+" "+unit+", as the document asks for")
		}
	}
}

// ended says whether a job was run, and why it failed. A unit that goes is stopped before
// anything else changes, and has no span; whether a slice was is not known then.
func ended(res *converge.Result, err error, a converge.Action) (cause string, ran bool) {
	for _, s := range res.Timeline {
		if s.ID == a.ID && s.Phase == "commit" {
			return s.Error, true
		}
	}
	if a.Verb != converge.VerbStop || path.Ext(string(a.ID)) == ".slice" {
		return "", false
	}
	if failed, ok := errors.AsType[*converge.ActionError](err); ok && failed.ID == a.ID {
		return failed.Err.Error(), true
	}
	return "", hasChanged(res)
}
