package desired

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPacketFilterIsValid(t *testing.T) {
	sound := func() *PacketFilter {
		return &PacketFilter{Table: "berth", Chains: []FilterChain{{Name: "c", Hook: "forward", Priority: -150,
			Drop: []Drop{{To: netip.MustParseAddr("2001:db8::1"), TCPPort: 1, Comment: strings.Repeat("x", maxComment)}}}}}
	}
	if err := sound().Validate(); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		edit func(*PacketFilter)
		want string
	}{
		"table":        {func(p *PacketFilter) { p.Table = "a b" }, "name for a table"},
		"no chain":     {func(p *PacketFilter) { p.Chains = nil }, "without chains"},
		"twins":        {func(p *PacketFilter) { p.Chains = append(p.Chains, p.Chains[0]) }, "two chains are called c"},
		"chain's name": {func(p *PacketFilter) { p.Chains[0].Name = "" }, "name for a chain"},
		"hook":         {func(p *PacketFilter) { p.Chains[0].Hook = "ingress" }, `no hook "ingress"`},
		"no rule":      {func(p *PacketFilter) { p.Chains[0].Drop = nil }, "without rules"},
		"no address":   {func(p *PacketFilter) { p.Chains[0].Drop[0].To = netip.Addr{} }, "told from other packets"},
		"mapped":       {func(p *PacketFilter) { p.Chains[0].Drop[0].To = netip.MustParseAddr("::ffff:192.0.2.1") }, "told from other packets"},
		"zone":         {func(p *PacketFilter) { p.Chains[0].Drop[0].To = netip.MustParseAddr("fe80::1%eth0") }, "told from other packets"},
		"no port":      {func(p *PacketFilter) { p.Chains[0].Drop[0].TCPPort = 0 }, "told from other packets"},
		"comment":      {func(p *PacketFilter) { p.Chains[0].Drop[0].Comment += strings.Repeat("x", maxComment+1) }, "257 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := sound()
			c.edit(p)
			if err := p.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
