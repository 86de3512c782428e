package provision

import (
	"cmp"
	"fmt"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// Last is the outcome of the last provisioning of this machine.
type Last struct {
	// Ended says that there is one.
	Ended      bool `json:"ended"`
	ImageBuild bool `json:"imageBuild,omitempty"`
	// ExitCode is nil where there is no result, or none that can be read.
	ExitCode  *int   `json:"exitCode,omitempty"`
	Code      string `json:"code,omitempty"`
	Milestone string `json:"milestone,omitempty"`
	Error     string `json:"error,omitempty"`
	Hint      string `json:"hint,omitempty"`
	// Problem is why the result can't be read.
	Problem string `json:"problem,omitempty"`
}

// LastResult reads the result of this machine, of provisioning or of an image's
// preparation.
func LastResult(h host.FS) (Last, error) {
	for _, imageBuild := range []bool{false, true} {
		a, err := lastAttempt(h, InstanceID(h), imageBuild)
		if err != nil {
			return Last{}, err
		}
		if a.ended {
			return a.last(imageBuild), nil
		}
	}
	return Last{}, nil
}

func (a attempt) last(imageBuild bool) Last {
	l := Last{Ended: true, ImageBuild: imageBuild, Error: a.document.Error}
	if d := a.document.Berth; d != nil {
		l.Code, l.Milestone, l.Hint = d.Code, d.Milestone, d.Hint
	}
	if a.problem != nil {
		l.Problem = a.problem.Error()
		return l
	}
	l.ExitCode = new(a.exitCode())
	return l
}

// String is the outcome in a line or a few.
func (l Last) String() string {
	switch {
	case !l.Ended:
		return "there is no result of a run (" + report.SentinelPath + ")"
	case l.Problem != "":
		return "has ended, but its result can't be read: " + l.Problem
	case *l.ExitCode == exitcode.OK && l.Milestone == "":
		return "done" // the published result knows no milestone
	case *l.ExitCode == exitcode.OK:
		return "done, reached " + l.Milestone
	}
	s := fmt.Sprintf("failed with %s (%d): %s", cmp.Or(l.Code, exitcode.ByNumber(*l.ExitCode).Name), *l.ExitCode, l.Error)
	if l.Hint != "" {
		s += "\n  hint: " + l.Hint
	}
	return s
}
