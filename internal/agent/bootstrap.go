package agent

import (
	"context"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Bootstrap makes the agent a service of the machine. All fields are required.
type Bootstrap struct {
	Host   host.Host
	Ledger *ledger.Reader
	// ConfigDir is where the agent's configuration is.
	ConfigDir string
	// Program is where this program is, Version its own.
	Program, Version string
	// Apply brings the machine to a state.
	Apply func(context.Context, *desired.State) (*converge.Result, error)
}

// Run may be called again at any time. The error is a *config.Error where what the agent is
// told is wrong.
func (b Bootstrap) Run(ctx context.Context) (*converge.Result, error) {
	told, err := b.read()
	if err != nil {
		return nil, err
	}
	if err := DataDisk(ctx, b.Host, told); err != nil {
		return nil, err
	}
	if err := selfupdate.Forget(ctx, b.Host); err != nil {
		return nil, err
	}
	st, err := Setup(b.Host, b.Ledger, selfupdate.Called(b.Program), b.ConfigDir)
	if err != nil {
		return nil, err
	}
	return b.Apply(ctx, st)
}

// read reads what the agent will be told, so that a service that can't work is none.
func (b Bootstrap) read() (*config.NodeAgent, error) {
	file, err := config.Find(b.Host, b.ConfigDir, b.Version)
	if err != nil {
		return nil, err
	}
	told, _, err := config.Read(b.Host, file)
	if err != nil {
		return nil, err
	}
	_, err = config.ReadOptions(b.Host)
	return told, err
}
