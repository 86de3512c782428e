package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/exitcode"
)

// No hint leads to provision's log or command: a node of the agent's has neither.
func TestExplain(t *testing.T) {
	for _, err := range []error{errors.New("something"), &exitcode.Error{Number: exitcode.Interrupted, Err: context.Canceled}} {
		if code, cause, remedy := Explain(err); code == "" || cause == "" || remedy == "" || strings.Contains(remedy, "provision") || strings.Contains(remedy, "aks") {
			t.Errorf("%v: %q, %q, %q", err, code, cause, remedy)
		}
	}
}
