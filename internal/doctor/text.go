package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Write prints a report for people.
func (r Report) Write(w io.Writer) error {
	var b strings.Builder
	for _, c := range r.Checks {
		word := string(c.Status)
		if c.Ignored {
			word = "ignored"
		}
		fmt.Fprintf(&b, "%-8s %-18s %s\n", word, c.Name, indent(c.Finding))
		if c.Field != "" {
			fmt.Fprintf(&b, "%27s field: %s\n", "", c.Field)
		}
		if c.Remedy != "" && c.Status != OK {
			fmt.Fprintf(&b, "%27s remedy: %s\n", "", indent(c.Remedy))
		}
	}
	if r.Cause != "" {
		fmt.Fprintf(&b, "look at %s first: it explains the most\n", r.Cause)
	}
	s := r.Summary
	fmt.Fprintf(&b, "%d checks in %.2f s: %d ok, %s, %s, %d unknown", len(r.Checks), r.Seconds, s.OK, several(s.Warnings, "warning"), several(s.Errors, "error"), s.Unknown)
	if s.Ignored > 0 {
		fmt.Fprintf(&b, ", %d ignored", s.Ignored)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// indent keeps the lines of a text below each other.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", 28))
}

func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
