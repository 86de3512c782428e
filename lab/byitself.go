package lab

import (
	_ "embed"
	"strings"
)

//go:embed changes-by-itself.txt
var changesByItself string

// ChangesByItself says whether a path is one that a machine changes without anybody's
// doing; see docs/leave.md.
func ChangesByItself(path string) bool {
	for line := range strings.Lines(changesByItself) {
		if p := strings.TrimSpace(line); strings.HasPrefix(p, "/") && (path == p || strings.HasPrefix(path, p+"/")) {
			return true
		}
	}
	return false
}
