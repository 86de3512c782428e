package agent

import (
	"context"
	"testing"
)

// TestNewConfigurationCutsNothingOff: what a change of the machine takes back ends
// nothing, and what ends the agent lets no other change begin.
func TestNewConfigurationCutsNothingOff(t *testing.T) {
	h := machineWith(configText)
	a := begin(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := a.reconciler.Rest()
	h.Overwrite(configFile, otherText)
	done := make(chan bool, 1)
	go func() { done <- a.changed(ctx) }()
	h.Overwrite(configFile, configText)
	over()
	if <-done {
		t.Error("what was taken back ends the agent")
	}
	h.Overwrite(configFile, otherText)
	if !a.changed(ctx) {
		t.Error("a new configuration is passed over")
	}
	free := make(chan struct{})
	go func() { a.reconciler.Rest()(); close(free) }()
	cancel()
	<-free
}
