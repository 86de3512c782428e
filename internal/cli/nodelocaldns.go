package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/component/localdns"
	"github.com/berth-dev/berth/internal/host/locallink"
	"github.com/berth-dev/berth/internal/nodedns"
)

// nodeLocalDNS holds what localdns.Unit and localdns.HostsUnit call.
func (e *env) nodeLocalDNS() *cobra.Command {
	c := &cobra.Command{Use: "localdns", Short: "Verbs for the node's own name server", Args: cobra.ArbitraryArgs, RunE: e.noCommand}
	c.AddCommand(
		e.localDNSVerb("prepare", "Give the name server its configuration and addresses", nodedns.Server.Prepare),
		e.localDNSVerb("announce", "Make the machine ask the name server, as soon as it answers", nodedns.Server.Announce),
		e.localDNSVerb("withdraw", "Give the machine its own name servers back", nodedns.Server.Withdraw),
		e.localDNSHosts())
	return c
}

func (e *env) localDNSVerb(name, short string, do func(nodedns.Server, context.Context) error) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: e.noArgs, RunE: func(c *cobra.Command, _ []string) error {
		s, err := e.nameServer()
		if err != nil {
			return err
		}
		return do(s, c.Context())
	}}
}

func (e *env) nameServer() (nodedns.Server, error) {
	h, err := e.open("/")
	return nodedns.Server{
		Host: h, Links: locallink.Network{},
		Client:  &http.Client{Transport: &http.Transport{}}, // on this machine: no proxy is asked
		Process: os.Getenv("MAINPID"),                       // of systemd
	}, err
}

func (e *env) localDNSHosts() *cobra.Command {
	return &cobra.Command{Use: "hosts NAME…", Short: "Write the addresses of names to " + localdns.HostsFile, RunE: func(c *cobra.Command, names []string) error {
		s, err := e.nameServer()
		if err != nil {
			return err
		}
		look, err := s.Upstream()
		if err != nil {
			return err
		}
		failed, err := s.Hosts(c.Context(), names, look)
		if len(failed) > 0 {
			fmt.Fprintln(e.err, "no address of: "+strings.Join(failed, ", "))
		}
		return err
	}}
}
