package cli

import (
	"os"

	"golang.org/x/term"

	"github.com/berth-dev/berth/internal/report"
)

func (e *env) progress() *report.Progress { return report.NewProgress(e.err, e.terminal, e.width) }

// terminal says whether a file is a terminal, and how wide; 100 columns where
// that is unknown.
func terminal(f *os.File) (bool, int) {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) {
		return false, 100
	}
	if w, _, err := term.GetSize(fd); err == nil && w > 20 {
		return true, w
	}
	return true, 100
}
