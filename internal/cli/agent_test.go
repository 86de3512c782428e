package cli

import (
	"testing"

	"github.com/berth-dev/berth/internal/agent/documents"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/provision"
)

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
