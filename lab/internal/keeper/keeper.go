// Package keeper is the background process of a lab: it answers DNS, routes
// pod networks and takes the lab down when the test that owns it is gone.
package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/berth-dev/berth/lab/internal/dns"
	"github.com/berth-dev/berth/lab/internal/netns"
)

// Role is the name of the keeper's role.
const Role = "keeper"

// Spec is what the keeper needs to know.
type Spec struct {
	Lab        string
	Namespace  netns.Namespace
	Address    string // of the bridge, for DNS
	HostsFile  string
	Kubeconfig string
	Owned      bool // standard input ends when the owner does
}

// Run is the process. teardown takes the whole lab down.
func Run(args []byte, teardown func(ctx context.Context, lab string) error) error {
	var s Spec
	if err := json.Unmarshal(args, &s); err != nil {
		return fmt.Errorf("decode keeper: %w", err)
	}
	ctx := context.Background()
	if err := s.serveDNS(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(s.HostsFile+".served", nil, 0o644); err != nil {
		return fmt.Errorf("say that DNS is served: %w", err)
	}
	go s.routePods(ctx)
	if !s.Owned {
		select {}
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, teardown(ctx, s.Lab))
}

func (s Spec) serveDNS(ctx context.Context) error {
	addr := net.JoinHostPort(s.Address, "53")
	conn, err := s.Namespace.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return fmt.Errorf("listen for DNS: %w", err)
	}
	l, err := s.Namespace.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for DNS: %w", err)
	}
	hosts := &dns.Hosts{Path: s.HostsFile}
	go report(func() error { return dns.Serve(conn, hosts.Lookup) })
	go report(func() error { return dns.ServeStream(l, hosts.Lookup) })
	return nil
}

func report(f func() error) {
	if err := f(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
