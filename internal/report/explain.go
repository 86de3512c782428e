package report

import (
	"fmt"
	"strings"
)

// Sentence is a failure in one line, for the field Error; empty if there is
// none.
func Sentence(f Failure) string {
	switch {
	case f.Cause == "":
		return ""
	case f.Doing == "", strings.HasPrefix(f.Cause, f.Doing):
		return f.Cause
	}
	return f.Doing + ": " + f.Cause
}

// Explain is a failure for people: what failed, where, why, and what helps.
func Explain(f Failure) []string {
	lines := []string{fmt.Sprintf("error: %s (code %d)", f.Code.Name, f.Code.Number)}
	for _, l := range []struct{ name, text string }{
		{"doing", f.Doing}, {"field", f.Field}, {"cause", f.Cause}, {"hint", f.Hint},
	} {
		if l.text != "" {
			lines = append(lines, fmt.Sprintf("  %s: %s", l.name, l.text))
		}
	}
	return lines
}

// Fields are the first of the fields: the error names them all.
func (f Failure) Fields() string {
	const most = 3
	paths := strings.Split(f.Field, ", ")
	if len(paths) <= most {
		return f.Field
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}
