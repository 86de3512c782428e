package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/join"
	"github.com/berth-dev/berth/internal/provision"
)

// stay has the agent keep the node that a document in a file made, or not any more.
type stay struct {
	host    host.Host
	parts   *parts
	file    string
	observe converge.Observer
}

func (s stay) run(ctx context.Context, w *join.Wanted) (*converge.Result, error) {
	if w.Keeps {
		k, err := s.keep(w)
		if err != nil {
			return nil, err
		}
		return k.Start(ctx, s.host, s.apply)
	}
	there, err := agent.KeepsFile(s.host)
	if err != nil || !there {
		return nil, err
	}
	kept, err := agent.Reset(ctx, s.host, s.apply)
	gone := converge.Action{ID: desired.UnitID(config.Unit), Verb: converge.VerbDelete, Reason: "nobody asks for " + contract.KeepField}
	return &converge.Result{Plan: &converge.Plan{Actions: []converge.Action{gone}, Kept: kept}}, err
}

// apply is no trial: what was there before the agent is nothing to go back to.
func (s stay) apply(ctx context.Context, st *desired.State) (*converge.Result, error) {
	opt := s.parts.engineOptions(s.host, joinCommand, s.observe)
	opt.Trial = nil
	return converge.New(opt).Apply(ctx, st)
}

func (s stay) keep(w *join.Wanted) (*agent.Keep, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	file, err := filepath.Abs(s.file)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", s.file, err)
	}
	k := &agent.Keep{Program: selfupdate.Called(program), Version: Version(), File: file, RequireDigests: s.parts.requireDigests,
		Node: provision.NodeOf(s.host, w.State).Name, Kubernetes: w.Version, Server: w.Server, CAFile: kubelet.CAFile}
	for _, r := range w.State.Resources {
		if cert, ok := r.(*desired.ClientCertificate); ok && cert.Azure == nil {
			k.Token = func() (desired.Secret, error) {
				return identity.BootstrapToken(s.host, cert.TokenFile, cert.TokenEnv, cert.Token.Reveal())
			}
		}
	}
	return k, nil
}
