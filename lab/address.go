package lab

import (
	"context"
	"net"
	"net/netip"

	"github.com/berth-dev/berth/lab/internal/netns"
	"github.com/berth-dev/berth/lab/internal/state"
)

// AddAddress gives the lab's bridge one more address, such as the instance
// metadata service's 169.254.169.254: nodes reach it through their default
// route. It goes with the lab.
func (l *Lab) AddAddress(ctx context.Context, a netip.Addr) error {
	return l.ns.IP(ctx, "addr", "replace", netip.PrefixFrom(a, a.BitLen()).String(), "dev", netns.Bridge)
}

// Listen listens inside the lab's network namespace.
func (l *Lab) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return l.ns.Listen(ctx, network, address)
}

// Dial connects from inside the lab's network namespace to an IP address.
func (l *Lab) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return l.ns.Dial(ctx, network, address)
}

// AddName makes the lab's name server answer for a name.
func (l *Lab) AddName(name string, a netip.Addr) error {
	return state.Update(l.Name, func(s *state.State) error {
		if s.Names == nil {
			s.Names = map[string]string{}
		}
		s.Names[name] = a.String()
		return l.writeHosts(s)
	})
}
