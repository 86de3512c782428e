package desired

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// PacketFilter is a table of nftables, family inet, that is berth's alone: what is
// in it is this and nothing else. It lasts until the next boot; what restores it
// then reads the same from a file. Its rules only drop, or leave packets untracked: what
// a table accepts is still subject to all others, what one drops is not.
type PacketFilter struct {
	Base
	Table  string        `json:"table"`
	Chains []FilterChain `json:"chains"`
}

// FilterChain is a point on a packet's way, with what is dropped there.
type FilterChain struct {
	Name string `json:"name"`
	// Hook is prerouting, input, forward, output or postrouting.
	Hook string `json:"hook"`
	// Priority orders the chains of all tables at a hook: -150 is that of iptables'
	// mangle table, 0 that of its filter table.
	Priority int    `json:"priority"`
	Drop     []Drop `json:"drop,omitempty"`
	// Untracked are packets of which the kernel keeps no connection.
	Untracked []Untracked `json:"untracked,omitempty"`
}

// Untracked is what goes to an address and a port.
type Untracked struct {
	To netip.Addr `json:"to"`
	// Protocol is tcp or udp.
	Protocol string `json:"protocol"`
	Port     uint16 `json:"port"`
	// Comment is as that of Drop.
	Comment string `json:"comment,omitempty"`
}

// Drop is TCP to an address and a port.
type Drop struct {
	To      netip.Addr `json:"to"`
	TCPPort uint16     `json:"tcpPort"`
	// Comment stands at the rule, for whoever lists it: at most 128 bytes.
	Comment string `json:"comment,omitempty"`
}

// PacketFilterID names a table.
func PacketFilterID(table string) ID { return ID("nftables:" + table) }

// ID implements Resource.
func (p *PacketFilter) ID() ID { return PacketFilterID(p.Table) }

// Kind implements Resource.
func (p *PacketFilter) Kind() string { return "nftables" }

var (
	filterName = lazyregexp.New(`^[a-z][a-z0-9-]{0,30}$`)
	hooks      = []string{"prerouting", "input", "forward", "output", "postrouting"}
)

// Validate implements Resource.
func (p *PacketFilter) Validate() error {
	if !filterName().MatchString(p.Table) {
		return fmt.Errorf("%q is not a name for a table", p.Table)
	}
	if len(p.Chains) == 0 {
		return errors.New("a packet filter without chains does nothing")
	}
	names := map[string]bool{}
	for _, c := range p.Chains {
		if names[c.Name] {
			return fmt.Errorf("two chains are called %s", c.Name)
		}
		names[c.Name] = true
		if err := c.validate(); err != nil {
			return fmt.Errorf("chain %s: %w", c.Name, err)
		}
	}
	return nil
}

// maxComment is what nft prints (NFTNL_UDATA_COMMENT_MAXLEN).
const maxComment = 128

func (c FilterChain) validate() error {
	if !filterName().MatchString(c.Name) {
		return fmt.Errorf("%q is not a name for a chain", c.Name)
	}
	if !slices.Contains(hooks, c.Hook) {
		return fmt.Errorf("there is no hook %q", c.Hook)
	}
	if len(c.Drop)+len(c.Untracked) == 0 {
		return errors.New("a chain without rules does nothing")
	}
	for _, u := range c.Untracked {
		if u.Protocol != "tcp" && u.Protocol != "udp" {
			return fmt.Errorf("%q is no protocol with ports", u.Protocol)
		}
		if err := validMatch(u.To, u.Port, u.Comment); err != nil {
			return err
		}
	}
	for _, d := range c.Drop {
		if err := validMatch(d.To, d.TCPPort, d.Comment); err != nil {
			return err
		}
	}
	return nil
}

func validMatch(to netip.Addr, port uint16, comment string) error {
	if !to.IsValid() || to.Is4In6() || to.Zone() != "" || port == 0 {
		return fmt.Errorf("%s port %d can't be told from other packets", to, port)
	}
	if len(comment) > maxComment {
		return fmt.Errorf("a comment has %d bytes, more than %d", len(comment), maxComment)
	}
	return nil
}
