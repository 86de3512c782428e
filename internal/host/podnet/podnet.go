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

// Remove takes it all away. kept are bridges that stay, with what is plugged into them.
// It does what it can: errors of the parts are joined. removed names each thing that
// went.
func (n Network) Remove(ctx context.Context, kept []string) (removed []string, err error) {
	var errs []error
	for _, part := range []func() ([]string, error){
		func() ([]string, error) { return removeLinks(kept) },
		func() ([]string, error) { return removeTables(ctx) },
		func() ([]string, error) { return n.removeLegacy(ctx) },
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
