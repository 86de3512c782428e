package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/host"
)

// Ask asks Azure what an identity may do. It writes nothing.
func (q AzureQuestion) Ask(ctx context.Context, h host.Host) ([]azure.Grant, error) {
	via := q.Via
	for _, file := range q.CAFiles {
		text, err := h.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("trust.caFiles: %w", err)
		}
		wider := *via // there are CAs, and so there is a way
		wider.CAs = append(slices.Clone(via.CAs), string(text))
		via = &wider
	}
	m, err := azure.New(host.ReadOnly{Host: h}).Manager(ctx, q.Who, via, q.Manager)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Granted(ctx, q.Scope)
}
