package lab

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/lab/internal/state"
)

// freeAddress is the first address from the tenth on that no node has.
func freeAddress(subnet netip.Prefix, s *state.State) netip.Addr {
	used := map[string]bool{}
	for _, n := range s.Nodes {
		used[n.IP] = true
	}
	for _, v := range s.VMs {
		used[v.IP] = true
	}
	a := subnet.Masked().Addr()
	for range 10 {
		a = a.Next()
	}
	for used[a.String()] {
		a = a.Next()
	}
	return a
}

// writeHosts tells the name server the names of the API server and the nodes.
// The caller holds the state's lock.
func (l *Lab) writeHosts(s *state.State) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", l.Gateway(), APIServerName)
	for name, n := range s.Nodes {
		fmt.Fprintf(&b, "%s %s %s.lab.test\n", n.IP, name, name)
	}
	for name, v := range s.VMs {
		fmt.Fprintf(&b, "%s %s %s.lab.test\n", v.IP, name, name)
	}
	for name, ip := range s.Names {
		fmt.Fprintf(&b, "%s %s\n", ip, name)
	}
	if err := os.MkdirAll(filepath.Dir(l.hostsFile()), 0o755); err != nil {
		return fmt.Errorf("create lab directory: %w", err)
	}
	tmp := l.hostsFile() + ".new"
	if err := os.WriteFile(tmp, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write lab's hosts: %w", err)
	}
	return os.Rename(tmp, l.hostsFile())
}

func (l *Lab) resolvConf() []byte { return []byte("nameserver " + l.Gateway().String() + "\n") }
