package doctor

import (
	"fmt"
	"strings"
)

// Table is the registry of checks in docs/preflight.md.
func Table() string {
	var b strings.Builder
	b.WriteString("| check | `preflight` | `doctor` | looks at | finds |\n|---|---|---|---|---|\n")
	for _, c := range all() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.Name, mark(c.When&Preflight), mark(c.When&Node), c.Asks, c.Finds)
	}
	return b.String()
}

func mark(when Occasion) string {
	if when != 0 {
		return "yes"
	}
	return ""
}
