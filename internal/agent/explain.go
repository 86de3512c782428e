package agent

import (
	"cmp"

	"github.com/berth-dev/berth/internal/provision"
)

// Explain is what the Node is told of an error.
func Explain(err error) (code, cause, remedy string) {
	f := provision.ExplainCommand(err)
	return f.Code.Name, f.Cause, cmp.Or(f.Hint, "Correct what is named: the agent tries again by itself.")
}
