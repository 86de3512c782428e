package lab

import (
	"context"
	"fmt"
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

// Redirect has what machines send to an address arrive at another one, which is the
// lab's. Others do not notice.
func (l *Lab) Redirect(ctx context.Context, from netip.Prefix, to, at netip.Addr) error {
	return l.redirect(ctx, "-A", from, to, at)
}

// EndRedirect ends what Redirect began.
func (l *Lab) EndRedirect(ctx context.Context, from netip.Prefix, to, at netip.Addr) error {
	return l.redirect(ctx, "-D", from, to, at)
}

func (l *Lab) redirect(ctx context.Context, verb string, from netip.Prefix, to, at netip.Addr) error {
	out, err := l.Command(ctx, "iptables", "-w", "-t", "nat", verb, "PREROUTING", "-s", from.String(), "-d", to.String(),
		"-j", "DNAT", "--to-destination", at.String()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("redirect %s to %s: %w: %s", to, at, err, out)
	}
	return nil
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
