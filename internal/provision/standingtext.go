package provision

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/report"
)

// Text is how a machine stands, for people.
func (s Standing) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "berth %s, instance %s\n", s.Version, cmp.Or(s.InstanceID, "unknown"))
	switch {
	case s.Running == nil:
		fmt.Fprintf(&b, "provisioning: %s\n", s.Provision)
	case s.Provision.Ended:
		fmt.Fprintf(&b, "provisioning: %s\nthe run before: %s\n", s.Running, s.Provision)
	default:
		fmt.Fprintf(&b, "provisioning: %s\n", s.Running)
	}
	if s.Applying != nil {
		fmt.Fprintf(&b, "applying: %s\n", s.Applying)
	}
	if s.Join != nil {
		fmt.Fprintf(&b, "join: %s\n", s.Join)
	}
	for _, u := range s.Units {
		fmt.Fprintf(&b, "%-28s %s", u.Name, u.Active)
		if u.Sub != "" {
			fmt.Fprintf(&b, " (%s)", u.Sub)
		}
		if u.Since != "" {
			b.WriteString(" since " + u.Since)
		}
		b.WriteByte('\n')
	}
	if t := s.Trial; t != nil {
		fmt.Fprintf(&b, "on trial: %s\n", trialText(t, s.TrialLeft))
	}
	if s.Drained != nil {
		fmt.Fprintf(&b, "drained: %s\n", drainText(&s))
	}
	if s.TrialProblem != "" {
		fmt.Fprintf(&b, "on trial: nobody knows what (%s); the next apply, or a restart of the machine, ends it and takes nothing back\n", s.TrialProblem)
	}
	if t := s.LastRun; t != nil {
		fmt.Fprintf(&b, "last run: %s, %s, exit code %d\n", t.Command, report.SystemdTime(t.Start), t.ExitCode)
	}
	return b.String()
}

// trialText is the change that is not confirmed, in a line. left is how long there is
// to confirm it; "" where only the clock says.
func trialText(n *trial.Note, left string) string {
	s := fmt.Sprintf("a change of the %s configuration since %s", n.Owner, report.SystemdTime(n.Began))
	switch {
	case n.Waiting && left != "":
		return s + "; run berth confirm within " + left
	case n.Waiting:
		return s + "; run berth confirm until " + report.SystemdTime(n.Until)
	}
	return s + "; not confirmed yet: if no run goes on, apply goes on with it, and a restart of the machine takes it back"
}

// drainText is the Node that berth has cordoned, in a line.
func drainText(s *Standing) string {
	if s.Trial != nil && s.Trial.Waiting && !s.Drained.Damaged() {
		return "node " + s.Drained.Node + " takes pods again when the change is confirmed or taken back"
	}
	return s.Drained.String() + ": " + s.Drained.Remedy()
}
