package contract

import (
	"time"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract/aks"
	"github.com/berth-dev/berth/internal/contract/node"
	"github.com/berth-dev/berth/internal/desired"
)

type nodeContract struct{ doc *node.Document }

func decodeNode(data []byte) (Contract, error) {
	doc, err := node.Decode(data)
	if err != nil {
		return nil, err
	}
	return &nodeContract{doc}, nil
}

// ReferencesOf are what a document leaves to others to say; of most kinds nothing.
func ReferencesOf(c Contract) component.References {
	switch c := c.(type) {
	case *nodeContract:
		return c.doc.References()
	case *aksContract:
		return aks.References(c.doc)
	}
	return component.References{}
}

// ServerOf is the URL of the API server that a NodeConfig names; "" for other
// documents.
func ServerOf(c Contract) string {
	if n, ok := c.(*nodeContract); ok {
		return n.doc.Server()
	}
	return ""
}

// NodeConfigOf is the document itself, with its defaults, where it is a NodeConfig; of
// other kinds nil.
func NodeConfigOf(c Contract) *v1alpha1.NodeConfig {
	if n, ok := c.(*nodeContract); ok {
		return n.doc.Config
	}
	return nil
}

func (c *nodeContract) Kind() Kind { return NodeConfig }

func (c *nodeContract) Notes() []desired.FieldNote { return nil }

func (c *nodeContract) Translate(f component.Facts) (*desired.State, error) {
	return node.Translate(c.doc, f)
}

// Terms: a document of this contract leaves the run to whoever starts it.
func (c *nodeContract) Terms() Terms {
	t := TermsOf(nil)
	t.RequireDigests = c.doc.Config.Artifacts.RequireDigests
	return t
}

// KubeletOf is kubelet's version that a NodeConfig names; "" for other documents.
func KubeletOf(c Contract) string {
	if n, ok := c.(*nodeContract); ok {
		return n.doc.Config.Components.Kubernetes.Version
	}
	return ""
}

// KeepField is what has the agent keep the machine, in a NodeConfig.
const KeepField = "agent.keep"

// KeepsOf says whether a NodeConfig wants berth's agent to keep the machine.
func KeepsOf(c Contract) bool {
	n, ok := c.(*nodeContract)
	return ok && n.doc.Config.Agent.Keep
}

// DrainOf is how long pods have to go before another kubelet starts; 0 where the
// document does not ask them to.
func DrainOf(c Contract) time.Duration {
	n, ok := c.(*nodeContract)
	if !ok || n.doc.Config.Node.Drain == nil {
		return 0
	}
	d, _ := time.ParseDuration(n.doc.Config.Node.Drain.Timeout) // its form was checked
	return d
}
