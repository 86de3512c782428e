// Package podnet takes away what a node's pods had of the network, where those who
// made it left it behind: the bridge of the pods, and the chains of kubelet, kube-proxy
// and the CNI plugins in the packet filter. Nothing of others is touched.
package podnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

// Before is what there was before berth came: it stays, with what is in it.
type Before struct {
	// Links are the names of interfaces; a bridge stays with what is plugged into it.
	Links []string
	// Filter has the names of tables and chains of the packet filter, as host.FilterName
	// prints them.
	Filter map[string]bool
}

// stood says whether a table was there, or a chain in it. The families and names of
// nf_tables and those of the legacy iptables are apart.
func (b Before) stood(family, table, chain string) bool {
	return b.Filter[host.FilterName{Family: family, Table: table, Chain: chain}.String()]
}

// Network is that of the machine that the program runs on. The zero value lacks the
// programs: rules of the legacy iptables stay and are named.
type Network struct {
	// Programs runs the legacy iptables, which alone knows its rules.
	Programs host.Runner
	Files    host.FS
}

// bridges are the interfaces that the CNI plugin bridge makes by the configurations of
// kubenet and of berth.
var bridges = []string{"cni0", "cbr0"}

// IsBridge says whether an interface is a bridge of pods.
func IsBridge(name string) bool { return slices.Contains(bridges, name) }

// tables are those that kube-proxy and CNI plugins make for themselves, whole.
var tables = []string{"kube-proxy", "cni_plugins_masquerade", "cni_hostport"}

// ours says that a chain is one of kubelet, kube-proxy or a CNI plugin.
func ours(chain string) bool {
	return strings.HasPrefix(chain, "KUBE-") || strings.HasPrefix(chain, "CNI-")
}

// Remove takes it all away, but for what was there before. It does what it can: errors of
// the parts are joined. removed names each thing that went.
func (n Network) Remove(ctx context.Context, before Before) (removed []string, err error) {
	var errs []error
	for _, part := range []func() ([]string, error){
		func() ([]string, error) { return removeLinks(before.Links) },
		func() ([]string, error) { return removeTables(ctx, before) },
		func() ([]string, error) { return n.removeLegacy(ctx, before) },
	} {
		names, err := part()
		removed, errs = append(removed, names...), append(errs, err)
	}
	return removed, errors.Join(errs...)
}

func named(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
