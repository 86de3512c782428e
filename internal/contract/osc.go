package contract

import (
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract/osc"
	"github.com/berth-dev/berth/internal/desired"
)

type oscContract struct {
	doc   *osc.Document
	agent *osc.AgentParts
}

// AgentOf is what a translated document says of the agent that applies it; nil where it
// says nothing.
func AgentOf(c Contract) *osc.AgentParts {
	if o, ok := c.(*oscContract); ok {
		return o.agent
	}
	return nil
}

// OfOSC is the contract of a document that is decoded already: decoding a large one
// takes longer than translating it.
func OfOSC(doc *osc.Document) Contract { return &oscContract{doc: doc} }

func decodeOSC(data []byte) (Contract, error) {
	doc, err := osc.Decode(data)
	if err != nil {
		return nil, err
	}
	return OfOSC(doc), nil
}

func (c *oscContract) Kind() Kind { return OperatingSystemConfig }

func (c *oscContract) Notes() []desired.FieldNote { return c.doc.Notes }

func (c *oscContract) Translate(f component.Facts) (*desired.State, error) {
	st, err := osc.Translate(c.doc, f)
	if err == nil && f.Agent {
		c.agent = osc.KeepAgentOut(st, f.Program, agentProgram)
	}
	return st, err
}

// agentProgram is where the published agent is.
const agentProgram = "/opt/bin/gardener-node-agent"

// Terms: a document of this contract says nothing of a run.
func (c *oscContract) Terms() Terms { return TermsOf(nil) }
