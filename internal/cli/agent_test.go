package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/agent/documents"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/provision"
)

// No hint leads to provision's log or command: a node of the agent's has neither.
func TestAgentExplains(t *testing.T) {
	for _, err := range []error{errors.New("something"), &exitcode.Error{Number: exitcode.Interrupted, Err: context.Canceled}} {
		if code, cause, remedy := explain(err); code == "" || cause == "" || remedy == "" || strings.Contains(remedy, "provision") || strings.Contains(remedy, "aks") {
			t.Errorf("%v: %q, %q, %q", err, code, cause, remedy)
		}
	}
}

// TestAgentTriesAsItsOptionsSay: the agent has no flag --no-revert, but an option.
func TestAgentTriesAsItsOptionsSay(t *testing.T) {
	c, err := provision.ReadContract(t.Context(), sample)
	if err != nil {
		t.Fatal(err)
	}
	for _, try := range []bool{true, false} {
		if got := (&env{}).parts(memory.New()).agentOptions(documents.Applied{Contract: c}, try).Trial.NoRevert; got == try {
			t.Errorf("trial: %v: no revert is %v", try, got)
		}
	}
}
