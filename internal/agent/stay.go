package agent

import (
	"context"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/provision"
)

// Stay has the agent keep a node that a document in a file made, or not any more. All
// fields but RequireDigests are required.
type Stay struct {
	Host host.Host
	// Apply brings the machine to a state. It is no trial: what was there before the agent
	// is nothing to go back to.
	Apply func(context.Context, *desired.State) (*converge.Result, error)
	// Program is where the agent is, Version its own.
	Program, Version string
	// File is the document's, absolute and clean.
	File           string
	RequireDigests bool
}

// Made is what a document made of the machine.
type Made struct {
	State *desired.State
	// Server is the URL of the API server, Kubernetes kubelet's version.
	Server, Kubernetes string
	// Keeps: the document has the agent keep it.
	Keeps bool
}

// Run makes the agent a service that keeps the node where the document says so, and takes
// away one that an earlier document asked for. The result is nil where there was nothing to
// do.
func (s Stay) Run(ctx context.Context, m Made) (*converge.Result, error) {
	if m.Keeps {
		return s.keep(m).Start(ctx, s.Host, s.Apply)
	}
	there, err := KeepsFile(s.Host)
	if err != nil || !there {
		return nil, err
	}
	kept, err := Reset(ctx, s.Host, s.Apply)
	gone := converge.Action{ID: desired.UnitID(config.Unit), Verb: converge.VerbDelete, Reason: "nobody asks for " + contract.KeepField}
	return &converge.Result{Plan: &converge.Plan{Actions: []converge.Action{gone}, Kept: kept}}, err
}

// keep is the agent that keeps the node. Its first certificate is asked for with the
// bootstrap token of kubelet's, where that has one.
func (s Stay) keep(m Made) *Keep {
	k := &Keep{Program: s.Program, Version: s.Version, File: s.File, RequireDigests: s.RequireDigests,
		Node: provision.NodeOf(s.Host, m.State).Name, Kubernetes: m.Kubernetes, Server: m.Server, CAFile: kubelet.CAFile}
	for _, r := range m.State.Resources {
		if cert, ok := r.(*desired.ClientCertificate); ok && cert.Azure == nil {
			k.Token = func() (desired.Secret, error) {
				return identity.BootstrapToken(s.Host, cert.TokenFile, cert.TokenEnv, cert.Token.Reveal())
			}
		}
	}
	return k
}
