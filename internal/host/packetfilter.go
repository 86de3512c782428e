package host

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// PacketFilter keeps whole tables of nftables, family inet, that belong to one
// program, and lists those of everybody. It adds nothing to tables of others. Under
// another root every method answers ErrOtherRoot; a kernel without nf_tables answers
// each that speaks of one table with an error.
type PacketFilter interface {
	// FilterNames lists the tables of all families with their chains, those of the legacy
	// iptables, too, and ipsets, in no order. What comes with an error is what could be read.
	FilterNames(ctx context.Context) ([]FilterName, error)
	// FilterTable describes a table; nil if there is none of that name.
	FilterTable(ctx context.Context, name string) (*FilterTable, error)
	// ReplaceFilterTable puts a table in the place of the one of its name, in one
	// transaction: a packet meets the old one or the new one. Other of t is not
	// written.
	ReplaceFilterTable(ctx context.Context, t FilterTable) error
	// DeleteFilterTable takes a table away with all that is in it: fs.ErrNotExist if
	// there is none.
	DeleteFilterTable(ctx context.Context, name string) error
}

// Ipset is the family of ipsets.
const Ipset = "ipset"

// FilterName is the name of a table of the packet filter, of a chain in it, or of an ipset.
type FilterName struct {
	// Family is ip, ip6, inet, arp, bridge or netdev, or the program that alone knows the
	// table: iptables-legacy, ip6tables-legacy. Of an ipset it is Ipset, and the name is in
	// the place of the table's.
	Family, Table string
	// Chain is "" for the table itself.
	Chain string
}

// String is the name as nft has it.
func (n FilterName) String() string {
	return strings.TrimSuffix(n.Family+" "+n.Table+" "+n.Chain, " ")
}

// FilterTable is a table of the packet filter.
type FilterTable struct {
	Name   string
	Chains []FilterChain
	// Other names what is in the table and can't be said in Chains.
	Other []string
}

// FilterChain is a chain of type filter, with the policy accept.
type FilterChain struct {
	Name string
	// Hook is prerouting, input, forward, output or postrouting.
	Hook string
	// Priority orders the chains of a hook: -150 is that of iptables' mangle table, 0
	// that of its filter table.
	Priority int
	// Drops are the rules, in order; those of Untracked follow.
	Drops     []Drop
	Untracked []Untracked
}

// Untracked is a rule: of what goes to an address and port no connection is kept.
type Untracked struct {
	To netip.Addr
	// Protocol is tcp or udp.
	Protocol string
	Port     uint16
	Comment  string
}

// String is one line as nft prints it, shortened.
func (u Untracked) String() string {
	return fmt.Sprintf("notrack %s to %s port %d", u.Protocol, u.To, u.Port)
}

// Drop is a rule: TCP to an address and port is dropped.
type Drop struct {
	To      netip.Addr
	TCPPort uint16
	Comment string
}

// String is one line as nft prints it, shortened.
func (d Drop) String() string { return fmt.Sprintf("drop tcp to %s port %d", d.To, d.TCPPort) }

// Equal says whether two tables do the same; the order of chains does not matter.
func (t *FilterTable) Equal(u *FilterTable) bool {
	if t == nil || u == nil {
		return t == u
	}
	same := func(a, b FilterChain) bool {
		return a.Name == b.Name && a.Hook == b.Hook && a.Priority == b.Priority && slices.Equal(a.Drops, b.Drops) &&
			slices.Equal(a.Untracked, b.Untracked)
	}
	return t.Name == u.Name && slices.Equal(t.Other, u.Other) && slices.EqualFunc(byName(t.Chains), byName(u.Chains), same)
}

func byName(chains []FilterChain) []FilterChain {
	return slices.SortedFunc(slices.Values(chains), func(a, b FilterChain) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// Hooks are the names of the hooks that a chain can be at, in the kernel's order.
var Hooks = []string{"prerouting", "input", "forward", "output", "postrouting"}
