package join

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/contract/node"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/provision"
)

// Loader reads the document of a join and finds out what it asks for on the machine. All
// fields but Flex and Drain are required.
type Loader struct {
	Host    host.Host
	Inquiry *provision.Inquiry
	// File is where the document is; "-" is standard input.
	File string
	// Flex: the document is a configuration of AKS Flex Node, and stands for a NodeConfig.
	Flex bool
	// Drain: the node is drained before another kubelet starts, whatever the document says.
	Drain bool
	// Take is told of the NodeConfig that is going to be applied, with its facts.
	Take func(text []byte, c contract.Contract, f component.Facts)
	// Fetch brings the package of the agent of Azure Arc.
	Fetch azure.Fetch
	Say   func(line string)

	text       []byte
	registered bool
}

// Load reads the document once, since a pipe has nothing for who asks again, and
// translates it. A document that can't be is an *exitcode.RefusedError.
func (l *Loader) Load(ctx context.Context) (_ *Wanted, err error) {
	if l.text == nil {
		if l.text, err = provision.ReadDocument(ctx, l.File); err != nil {
			return nil, err
		}
	}
	if l.Flex {
		return l.flex(ctx, l.text)
	}
	return l.nodeConfig(ctx, l.text)
}

// flex decodes a configuration of AKS Flex Node. Its secrets stay inline: it has
// them itself.
func (l *Loader) flex(ctx context.Context, text []byte) (*Wanted, error) {
	doc, notes, err := node.FromFlex(text, node.SecretLocation{Inline: true})
	if err != nil {
		return nil, &exitcode.RefusedError{Err: err}
	}
	if text, err = node.Text(doc); err != nil {
		return nil, fmt.Errorf("translate %s: %w", l.File, err)
	}
	w, err := l.nodeConfig(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("%s, as a NodeConfig: %w", l.File, err)
	}
	w.Notes = slices.Concat(notes, w.Notes)
	return w, nil
}

// nodeConfig decodes a NodeConfig and translates it for the machine.
func (l *Loader) nodeConfig(ctx context.Context, text []byte) (*Wanted, error) {
	c, err := l.decode(text)
	if err != nil {
		return nil, err
	}
	l.Inquiry.BeginMachine(ctx)
	if err := l.register(ctx, c); err != nil {
		return nil, err
	}
	facts, err := l.Inquiry.FactsFor(ctx, c)
	if err != nil {
		return nil, err
	}
	l.Take(text, c, facts)
	facts.Agent = contract.KeepsOf(c) // it will
	st, err := provision.Translate(c, facts, "the document")
	if err != nil {
		return nil, err
	}
	if err := LacksProof(l.Host, st, azure.New(l.Host).Lacks); err != nil {
		return nil, err
	}
	unsaid := func(n desired.FieldNote) bool { return n.Path == node.ClusterDNSField }
	return &Wanted{State: st, Server: ServerOf(st, contract.ServerOf(c)), Version: contract.KubeletOf(c), Drains: l.Drain || contract.DrainOf(c) > 0,
		Keeps: contract.KeepsOf(c), Notes: c.Notes(), Open: slices.ContainsFunc(st.Partial, unsaid)}, nil
}

// decode takes a NodeConfig. One that the agent is to keep has to stay where it is.
func (l *Loader) decode(text []byte) (contract.Contract, error) {
	c, err := provision.Decode(text)
	if err != nil {
		return nil, err
	}
	refuse := func(at, remedy string, err error) error {
		return &exitcode.RefusedError{Err: &exitcode.Error{Number: exitcode.Internal, During: "read the document", At: at, Err: err, Remedy: remedy}}
	}
	if c.Kind() != contract.NodeConfig {
		return nil, refuse("", "berth apply makes the machine as this document says.",
			fmt.Errorf("the document is: %s, and joining takes a %s", c.Kind(), contract.NodeConfig))
	}
	if contract.KeepsOf(c) && !provision.DocumentStays(l.File) {
		return nil, refuse(contract.KeepField, "Write the document to a file that stays, as /etc/berth/node.yaml, and name it with -f.",
			errors.New(contract.KeepField+": the document comes by a pipe, and the agent would have no file to follow"))
	}
	return c, nil
}
