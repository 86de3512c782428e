package join

import (
	"cmp"
	"context"
	"fmt"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/contract/node"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/provision"
)

// register makes the machine one of Azure Arc, whose identity everything else needs. Once
// it is a node, its certificate is what it needs.
func (l *Loader) register(ctx context.Context, c contract.Contract) error {
	refs := contract.ReferencesOf(c)
	r := refs.Arc
	if r == nil || l.registered {
		return nil
	}
	for _, file := range r.CAFiles {
		text, err := l.Host.ReadFile(file)
		if err != nil {
			return fmt.Errorf("trust.caFiles: %w", err)
		}
		r.Via.CAs = append(r.Via.CAs, string(text))
	}
	if r.Agent != nil {
		r.Agent.Via = r.Via
	}
	r.Name = cmp.Or(r.Name, provision.Hostname(l.Host))
	err := azure.New(l.Host).Register(ctx, r, provision.Settled(l.Host, refs, contract.ServerOf(c)), l.Fetch, l.Say)
	l.registered = err == nil
	return err
}

// FlexRegistrar is who registers machines by a configuration of AKS Flex Node; nil where
// nobody does.
func FlexRegistrar(h host.FS, file string) (*desired.AzureIdentity, error) {
	text, err := h.ReadFile(file)
	if err != nil {
		return nil, err
	}
	doc, _, err := node.FromFlex(text, node.SecretLocation{Inline: true})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return node.Registrar(doc), nil
}
