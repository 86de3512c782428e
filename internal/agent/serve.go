package agent

import (
	"context"

	"github.com/berth-dev/berth/internal/agent/status"
)

// serve answers monitoring.
func (a *Agent) serve(ctx context.Context) error {
	s := &status.Server{Counts: &a.counts, Ready: a.reached, Health: a.config.Server.HealthProbes.Port, Metrics: a.config.Server.Metrics.Port, Log: a.Log}
	return s.Run(ctx)
}

// reached says whether an API server was, since the agent began.
func (a *Agent) reached() error {
	if _, known := a.node.latest.Get(); !known {
		return errNoServer
	}
	return nil
}
