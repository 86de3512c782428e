package memory

import (
	"context"
	"io/fs"
	"slices"
	"syscall"

	"github.com/berth-dev/berth/internal/host"
)

// FilterNames implements host.PacketFilter.
func (h *Host) FilterNames(ctx context.Context) ([]host.FilterName, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.filterError(ctx); err != nil {
		return nil, err
	}
	names := slices.Clone(h.filterNames)
	for _, t := range h.tables {
		names = append(names, host.FilterName{Family: "inet", Table: t.Name})
		for _, c := range t.Chains {
			names = append(names, host.FilterName{Family: "inet", Table: t.Name, Chain: c.Name})
		}
	}
	return names, nil
}

// FilterTable implements host.PacketFilter.
func (h *Host) FilterTable(ctx context.Context, name string) (*host.FilterTable, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.filterError(ctx); err != nil {
		return nil, pathError("read table", "inet "+name, err)
	}
	t, ok := h.tables[name]
	if !ok {
		return nil, nil
	}
	t = cloneTable(t)
	return &t, nil
}

// ReplaceFilterTable implements host.PacketFilter.
func (h *Host) ReplaceFilterTable(ctx context.Context, t host.FilterTable) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.filterError(ctx)
	for _, c := range t.Chains {
		if err == nil && !slices.Contains(host.Hooks, c.Hook) {
			err = syscall.EINVAL
		}
	}
	if err != nil {
		return pathError("replace table", "inet "+t.Name, err)
	}
	h.tick()
	t = cloneTable(t)
	t.Other = nil
	h.tables[t.Name] = t
	return nil
}

// DeleteFilterTable implements host.PacketFilter.
func (h *Host) DeleteFilterTable(ctx context.Context, name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.filterError(ctx)
	if _, ok := h.tables[name]; !ok && err == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return pathError("delete table", "inet "+name, err)
	}
	h.tick()
	delete(h.tables, name)
	return nil
}

func (h *Host) filterError(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case h.off:
		return errOff
	}
	return h.noTables
}

// NoPacketFilter makes every call of the packet filter fail with err: a kernel
// without nf_tables. nil brings it back.
func (h *Host) NoPacketFilter(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noTables = err
}

// FlushTables is nft flush ruleset.
func (h *Host) FlushTables() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.tables)
	h.filterNames = nil
}

// PutFilterNames makes tables and chains of families that the host does not keep
// otherwise.
func (h *Host) PutFilterNames(names ...host.FilterName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.filterNames = append(h.filterNames, names...)
}

// DropFilterNames takes away those of them that which says.
func (h *Host) DropFilterNames(which func(host.FilterName) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.filterNames = slices.DeleteFunc(h.filterNames, which)
}

// PutTable makes a table as somebody else would, Other included.
func (h *Host) PutTable(t host.FilterTable) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tables[t.Name] = cloneTable(t)
}

// cloneTable gives the caller nothing of the host's own.
func cloneTable(t host.FilterTable) host.FilterTable {
	t.Other, t.Chains = slices.Clone(t.Other), slices.Clone(t.Chains)
	for i := range t.Chains {
		t.Chains[i].Drops = slices.Clone(t.Chains[i].Drops)
		t.Chains[i].Untracked = slices.Clone(t.Chains[i].Untracked)
	}
	return t
}
