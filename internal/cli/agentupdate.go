package cli

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// updater is what puts the agent of a document in this one's place.
func (e *env) updater(h host.Host, dir string, o *config.Options, events selfupdate.Recorder, log *slog.Logger) *selfupdate.Updater {
	program, _ := os.Executable() // what runs has a path; only a broken /proc hides it
	return selfupdate.New(selfupdate.Options{
		Host: h, Ledger: &e.ledger, Program: program, Setup: func(program string) (*desired.State, error) { return agent.Setup(h, &e.ledger, program, dir) }, Within: o.UpdateWithin.Duration, Allow: o.ForeignAgent == config.Allow, Events: events, Log: log,
		Engine: func(contract []byte, program string, within time.Duration) *converge.Engine {
			return e.agentEngine(h, contract, program, within)
		},
	})
}

// agentEngine is the engine for the agent itself. What its trial is about is no node:
// the new agent speaks for itself.
func (e *env) agentEngine(h host.Host, contract []byte, program string, within time.Duration) *converge.Engine {
	opt := e.parts(h).engineOptions(h, agentCommandName, nil)
	opt.TakeOver = true
	if contract == nil {
		opt.Trial = nil
		return converge.New(opt)
	}
	opt.Trial.Contract, opt.Trial.Program, opt.Trial.Within = trial.Contract{Document: contract}, program, within
	opt.Trial.Stands = func(context.Context, *desired.State) trial.Standing { return trial.Standing{} }
	opt.Trial.Await = func(context.Context, *desired.State, trial.Standing) (string, error) { return "", nil }
	return converge.New(opt)
}
