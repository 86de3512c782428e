package cli

import (
	"time"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/documents"
	"github.com/berth-dev/berth/internal/agent/footprint"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// agentCommandName is what the agent calls itself where it holds the lock.
const agentCommandName = "berth agent"

// unitTimeout is how long a document waits for one unit. One that takes longer goes on starting:
// the document is tried again, and meanwhile the agent does what else there is to do.
const unitTimeout = 3 * time.Minute

// opener turns documents of one of the agent's sources into targets. try: a change that
// breaks what ran is taken back.
func (e *env) opener(h host.Host, source agent.Source, secrets agent.SecretReader, try bool) *documents.Opener {
	return &documents.Opener{
		Host: h, Source: source, Secrets: secrets, Release: footprint.Release,
		Providers: func() documents.Providers {
			p := e.parts(h)
			return documents.Providers{Inquiry: &p.inquiry, Engine: func(a documents.Applied) *converge.Engine {
				return converge.New(p.agentOptions(a, try))
			}}
		},
	}
}

// agentOptions are the engine's for a document that the agent follows.
func (p *parts) agentOptions(a documents.Applied, try bool) converge.Options {
	p.document, p.gathered, p.noRevert, p.yields = a.Text, a.Facts, !try, true
	p.takeDigests(a.Contract)
	if a.Drains {
		p.take(a.Contract)
	}
	opt := p.engineOptions(p.host, agentCommandName, nil)
	opt.GoOn, opt.UnitTimeout = true, unitTimeout
	return opt
}
