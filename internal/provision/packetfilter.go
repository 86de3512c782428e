package provision

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/converge/kind/nftables"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
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
