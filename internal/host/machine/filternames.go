package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/ipset"
	"github.com/berth-dev/berth/internal/host/iptables"
	"github.com/berth-dev/berth/internal/host/kernelmodule"
)

// FilterNames implements host.PacketFilter. What nobody has loaded has no tables, and
// is not loaded to be asked.
func (p packetFilter) FilterNames(ctx context.Context) ([]host.FilterName, error) {
	names, err := nftNames(ctx)
	legacy, legacyErr := p.legacyNames(ctx)
	sets, setsErr := ipset.Names()
	for _, s := range sets {
		names = append(names, host.FilterName{Family: host.Ipset, Table: s})
	}
	return slices.Concat(names, legacy), errors.Join(err, legacyErr, setsErr)
}

func nftNames(ctx context.Context) ([]host.FilterName, error) {
	if there, err := kernelmodule.Loaded("/", "nf_tables"); err == nil && !there {
		return nil, ctx.Err()
	}
	c, err := dialFilter(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the packet filter: %w", err)
	}
	return tableNames(c)
}

// tableNames are none where the kernel turns out to lack nf_tables.
func tableNames(c *nftables.Conn) ([]host.FilterName, error) {
	tables, err := c.ListTables()
	if kernelmodule.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	if len(tables) == 0 {
		return nil, nil
	}
	chains, err := c.ListChains()
	if err != nil {
		return nil, fmt.Errorf("list chains: %w", err)
	}
	var names []host.FilterName
	for _, t := range tables {
		names = append(names, host.FilterName{Family: familyName(t.Family), Table: t.Name})
	}
	for _, ch := range chains {
		names = append(names, host.FilterName{Family: familyName(ch.Table.Family), Table: ch.Table.Name, Chain: ch.Name})
	}
	return names, nil
}

func familyName(f nftables.TableFamily) string {
	switch f {
	case nftables.TableFamilyIPv4:
		return "ip"
	case nftables.TableFamilyIPv6:
		return "ip6"
	case nftables.TableFamilyINet:
		return "inet"
	case nftables.TableFamilyARP:
		return "arp"
	case nftables.TableFamilyBridge:
		return "bridge"
	case nftables.TableFamilyNetdev:
		return "netdev"
	}
	return fmt.Sprintf("family-%d", f)
}

// legacyNames are those that the kernel keeps outside nf_tables.
func (p packetFilter) legacyNames(ctx context.Context) (names []host.FilterName, err error) {
	var errs []error
	for _, f := range iptables.Families {
		used, err := f.Used(p.files)
		if err == nil && used {
			var saved string
			saved, err = f.Save(ctx, p.programs)
			names = slices.AppendSeq(names, f.Names(saved))
		}
		errs = append(errs, err)
	}
	return names, errors.Join(errs...)
}
