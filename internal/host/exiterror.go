package host

import (
	"bytes"
	"fmt"
	"strings"
)

// Error names the command and the last line it wrote to standard error. The
// arguments are shown: no secret may be one.
func (e *ExitError) Error() string {
	text := bytes.TrimSpace(e.Output.Stderr)
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	cmd := strings.Join(append([]string{e.Command.Path}, e.Command.Args...), " ")
	if len(text) == 0 {
		return fmt.Sprintf("%s: exit code %d", cmd, e.Output.ExitCode)
	}
	return fmt.Sprintf("%s: exit code %d: %s", cmd, e.Output.ExitCode, text)
}
