package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// WritePlan prints a plan for people: one line for each action, its diff
// indented below, then what is left to say and a count.
func WritePlan(w io.Writer, p *converge.Plan, unused []desired.FieldNote, unhandled []string) error {
	var b strings.Builder
	for _, a := range p.Actions {
		writeAction(&b, a)
	}
	section(&b, "deferred to the first boot", p.Deferred, func(a converge.Action) string { return actionLine(a) })
	section(&b, "left alone", p.Remarks, func(s string) string { return s })
	section(&b, "kept", p.Kept, func(s string) string { return s })
	section(&b, "remarks on fields", unused, func(n desired.FieldNote) string { return n.Path + ": " + n.Reason })
	section(&b, "fields that this version does not act on", unhandled, func(s string) string { return s })
	b.WriteString(summary(p) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func actionLine(a converge.Action) string {
	line := fmt.Sprintf("%s %s: %s", a.Verb, a.ID, a.Reason)
	if a.Blocked != "" {
		line += " (blocked: " + a.Blocked + ")"
	}
	if a.Disruption != converge.DisruptNone && a.Disruption != "" {
		line += fmt.Sprintf(" (disrupts: %s)", a.Disruption)
	}
	if a.Field != "" {
		line += " [" + a.Field + "]"
	}
	return line
}

func writeAction(b *strings.Builder, a converge.Action) {
	b.WriteString(actionLine(a) + "\n")
	for l := range strings.Lines(a.Diff) {
		b.WriteString("    " + strings.TrimRight(l, "\n") + "\n")
	}
}

func section[T any](b *strings.Builder, title string, items []T, line func(T) string) {
	if len(items) == 0 {
		return
	}
	b.WriteString(title + ":\n")
	for _, i := range items {
		b.WriteString("  " + line(i) + "\n")
	}
}

// Count is "1 change", "2 changes".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func summary(p *converge.Plan) string {
	if p.Empty() {
		return "no changes"
	}
	disrupts, blocked := map[converge.Disruption]int{}, 0
	for _, a := range p.Actions {
		disrupts[a.Disruption]++
		if a.Blocked != "" {
			blocked++
		}
	}
	s := Count(len(p.Actions), "change")
	for _, d := range []converge.Disruption{converge.DisruptReload, converge.DisruptRestart, converge.DisruptDrain, converge.DisruptReboot} {
		if n := disrupts[d]; n > 0 {
			s += fmt.Sprintf(", %d disrupting by %s", n, d)
		}
	}
	if blocked > 0 {
		s += fmt.Sprintf(", %d blocked", blocked)
	}
	return s
}
