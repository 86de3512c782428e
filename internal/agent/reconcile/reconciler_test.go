package reconcile

import (
	"testing"
	"testing/synctest"
)

// TestScenarios plays what happens to a machine under the agent.
func TestScenarios(t *testing.T) {
	for _, scenarios := range []map[string]func(*bench){
		documentScenarios, driftScenarios, failureScenarios, nodeScenarios, ownerScenarios, renewalScenarios, trialScenarios, turnScenarios, updateScenarios,
	} {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t)
					scenario(b)
					b.stop()
				})
			})
		}
	}
}
