package provision

import (
	"context"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/converge/kind/nftables"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/iptables"
)

// RestorePacketFilter puts the table in force that the last run wrote down, where it
// is not: at boot, and when somebody emptied the packet filter.
func RestorePacketFilter(ctx context.Context, h host.Host) error {
	p, err := writtenFilter(h)
	if err != nil {
		return &exitcode.Error{Number: exitcode.PacketFilter, During: "put the packet filter in force", Err: err,
			Remedy: "Run apply or provision again with this machine's configuration: it writes " + packetfilter.RulesFile + "."}
	}
	want := nftables.Table(p)
	have, err := h.FilterTable(ctx, want.Name)
	if err != nil {
		return err
	}
	if have.Equal(&want) {
		return nil
	}
	return h.ReplaceFilterTable(ctx, want)
}

func writtenFilter(h host.FS) (*desired.PacketFilter, error) {
	rules, err := h.ReadFile(packetfilter.RulesFile)
	if err != nil {
		return nil, fmt.Errorf("read packet filter: %w", err)
	}
	return packetfilter.Read(rules)
}

// AcceptForwarded has iptables, a program of the image, let packets of IPv4 be forwarded that no
// rule forbids, as published: with the policy DROP, which docker sets, pods of bridged networks
// reach nobody. Where nobody has made its chain nothing is dropped, and the program, which
// would make one, does not run.
func AcceptForwarded(ctx context.Context, h host.Host, program string) error {
	if !mayDropForwarded(ctx, h) {
		return nil
	}
	_, err := h.Run(ctx, host.Command{Path: program, Args: []string{"-w", "5", "-P", "FORWARD", "ACCEPT"}})
	return err
}

// mayDropForwarded says whether there may be iptables' chain FORWARD. The tables of the legacy
// one are not listed: with the rules of many Services that takes seconds.
func mayDropForwarded(ctx context.Context, h host.Host) bool {
	for _, f := range iptables.Families {
		if used, err := f.Used(h); used || err != nil {
			return true
		}
	}
	names, err := h.FilterNames(ctx)
	return err != nil || slices.Contains(names, host.FilterName{Family: "ip", Table: "filter", Chain: "FORWARD"})
}
