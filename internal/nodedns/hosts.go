package nodedns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/component/localdns"
	"github.com/berth-dev/berth/internal/host"
)

// Lookup finds the addresses of a name.
type Lookup func(ctx context.Context, name string) ([]netip.Addr, error)

// Hosts writes the addresses of names where the server looks first. A name that nobody
// resolves keeps those that it had. failed names the names without any.
func (s Server) Hosts(ctx context.Context, names []string, look Lookup) (failed []string, err error) {
	before, err := s.Host.ReadFile(localdns.HostsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the server does not run
	}
	if err != nil {
		return nil, fmt.Errorf("read the name server's addresses: %w", err)
	}
	entries := lookups(ctx, names, look)
	for i, e := range entries {
		if len(e.Addresses) == 0 {
			entries[i].Addresses = localdns.ReadHosts(string(before), e.Name)
		}
		if len(entries[i].Addresses) == 0 {
			failed = append(failed, e.Name)
		}
	}
	text := localdns.HostsText(entries)
	if text == string(before) {
		return failed, nil
	}
	if err := host.WriteFile(s.Host, localdns.HostsFile, []byte(text), readable); err != nil {
		return failed, fmt.Errorf("write the name server's addresses: %w", err)
	}
	return failed, nil
}

// lookups asks for all names at once, and keeps their order.
func lookups(ctx context.Context, names []string, look Lookup) []localdns.Entry {
	out := make([]localdns.Entry, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			addresses, err := look(ctx, name)
			if err != nil {
				addresses = nil
			}
			slices.SortFunc(addresses, netip.Addr.Compare)
			out[i] = localdns.Entry{Name: name, Addresses: slices.Compact(addresses)}
		})
	}
	all.Wait()
	return out
}

// tries is how often a name is asked for, lookupBound how long each time.
const (
	tries       = 3
	lookupBound = 3 * time.Second
)

// Upstream looks names up at the machine's other name servers: its own would answer
// with what is in the file.
func (s Server) Upstream() (Lookup, error) {
	list, err := upstream(s.Host)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, name string) (out []netip.Addr, err error) {
		for range tries {
			for _, server := range list {
				if out, err = askServer(ctx, server, name); err == nil || unknown(err) {
					return out, err
				}
			}
			if sleep := s.Host.Sleep(ctx, 2*time.Second); sleep != nil {
				return nil, errors.Join(err, sleep)
			}
		}
		return nil, err
	}, nil
}

// unknown says that a server knows that there is no such name.
func unknown(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

func askServer(ctx context.Context, server netip.Addr, name string) ([]netip.Addr, error) {
	ctx, end := context.WithTimeout(ctx, lookupBound)
	defer end()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, netip.AddrPortFrom(server, 53).String())
	}}
	found, err := r.LookupNetIP(ctx, "ip", name+".")
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found, err
}
