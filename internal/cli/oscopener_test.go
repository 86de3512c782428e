package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestAgentTriesAsItsOptionsSay: the agent has no flag --no-revert, but an option.
func TestAgentTriesAsItsOptionsSay(t *testing.T) {
	for _, try := range []bool{true, false} {
		o := newOSCOpener(&env{}, memory.New(), nil, try)
		if got := o.parts(nil).trial().NoRevert; got == try {
			t.Errorf("trial: %v: no revert is %v", try, got)
		}
	}
}

// BenchmarkOpen opens a document of 1 MB: what the agent does before a plan is made.
func BenchmarkOpen(b *testing.B) {
	text := oscHead + "spec:\n  files:\n"
	for i := range 200 {
		text += fmt.Sprintf("  - path: /etc/large/%03d\n    content: {inline: {encoding: b64, data: %s}}\n", i, strings.Repeat("QUJD", 1300))
	}
	o, d := newOSCOpener(&env{}, memory.New(), nil, true), reconcile.DocumentOf([]byte(text))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.Open(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
