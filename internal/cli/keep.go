package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/join"
)

// stay has the agent keep the node that a document in a file made, or not any more.
func (p *parts) stay(file string, o converge.Observer) func(context.Context, *join.Wanted) (*converge.Result, error) {
	return func(ctx context.Context, w *join.Wanted) (*converge.Result, error) {
		program, err := os.Executable()
		if err != nil && w.Keeps {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		apply := func(ctx context.Context, st *desired.State) (*converge.Result, error) {
			opt := p.engineOptions(p.host, joinCommand, o)
			opt.Trial = nil
			return converge.New(opt).Apply(ctx, st)
		}
		s := agent.Stay{Host: p.host, Apply: apply, Program: selfupdate.Called(program), Version: Version(), File: fromHere(file), RequireDigests: p.requireDigests}
		return s.Run(ctx, agent.Made{State: w.State, Server: w.Server, Kubernetes: w.Version, Keeps: w.Keeps})
	}
}
