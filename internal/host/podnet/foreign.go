package podnet

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/ipset"
	"github.com/berth-dev/berth/internal/host/iptables"
)

// foreignLinks are the names of interfaces that networks of pods and kube-proxy make
// themselves, as path.Match has them.
var foreignLinks = []string{
	"flannel.*", "flannel-*", "cilium_*", "lxc_health", "lxc[0-9a-f]*", "cali*", "vxlan.calico", "vxlan-v6.calico", "wireguard.cali", "wg-v6.cali", "tunl0",
	"kube-ipvs0", "kube-bridge", "dummy0", "nodelocaldns", "weave", "vethwe-*", "antrea-*", "genev_sys_*", "ovn-k8s-*", "kube-ovn*", "ovn0",
}

// foreignChains begin the names of chains that they make, foreignTables those of whole
// tables, foreignSets those of ipsets.
var (
	foreignChains = []string{"FLANNEL-", "cali-", "CILIUM_", "OLD_CILIUM_", "WEAVE-", "ANTREA-"}
	foreignTables = []string{"flannel-", "calico", "cilium", "antrea"}
	foreignSets   = []string{"cali4", "cali6", "KUBE-", "weave-", "ANTREA-", "cilium_"}
)

func begins(name string, with []string) bool {
	return slices.ContainsFunc(with, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Foreign names what is left of the cluster's own network, which its DaemonSet made and
// nobody takes away: interfaces, chains, tables and ipsets that were not there before. What
// of it is in use is for whoever knows that network to say.
func (n Network) Foreign(ctx context.Context, before Before) (left []string, err error) {
	var errs []error
	for _, part := range []func() ([]string, error){
		func() ([]string, error) { return leftLinks(before.Links) },
		func() ([]string, error) { return leftRules(ctx, before) },
		func() ([]string, error) { return n.leftLegacy(ctx, before) },
		func() ([]string, error) { return leftSets(before) },
	} {
		names, err := part()
		left, errs = append(left, names...), append(errs, err)
	}
	return left, errors.Join(errs...)
}

func leftLinks(before []string) (left []string, err error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return nil, named("open the network", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	all, err := listLinks(c)
	if err != nil {
		return nil, named("list interfaces", err)
	}
	for _, l := range all {
		is := slices.ContainsFunc(foreignLinks, func(p string) bool { ok, _ := path.Match(p, l.name); return ok })
		if is && !slices.Contains(before, l.name) {
			left = append(left, "interface "+l.name+": ip link delete "+l.name)
		}
	}
	return left, nil
}

// leftRules are in nf_tables, also those of the nft flavour of iptables.
func leftRules(ctx context.Context, before Before) (left []string, err error) {
	c, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	for _, family := range families {
		tables, err := tablesOf(c, family)
		if err != nil {
			return left, err
		}
		if len(tables) == 0 {
			continue
		}
		for _, t := range tables {
			if begins(t.Name, foreignTables) && !before.stood(familyNames[family], t.Name, "") {
				left = append(left, "table "+nameOf(t)+": nft delete table "+nameOf(t))
			}
		}
		chains, err := c.ListChainsOfTableFamily(family)
		if err != nil {
			return left, named("list chains", err)
		}
		left = append(left, leftChains(chains, before)...)
	}
	return left, nil
}

func leftChains(chains []*nftables.Chain, before Before) (left []string) {
	for _, chain := range chains {
		if begins(chain.Name, foreignChains) && !begins(chain.Table.Name, foreignTables) && !stoodChain(before, chain) {
			left = append(left, "chain "+chain.Name+" of table "+nameOf(chain.Table)+", and what leads to it")
		}
	}
	return left
}

// leftLegacy are chains that the kernel keeps outside nf_tables.
func (n Network) leftLegacy(ctx context.Context, before Before) (left []string, err error) {
	for _, f := range iptables.Families {
		if n.Files == nil {
			break
		}
		used, err := f.Used(n.Files)
		if err != nil {
			return left, err
		}
		if !used {
			continue
		}
		saved, err := f.Save(ctx, n.Programs)
		if err != nil {
			return left, err
		}
		for c := range f.Names(saved) {
			if begins(c.Chain, foreignChains) && !before.stood(c.Family, c.Table, c.Chain) {
				left = append(left, "chain "+c.Chain+" of "+f.Program+", and what leads to it")
			}
		}
	}
	return left, nil
}

// leftSets are the ipsets that those networks and kube-proxy's mode ipvs made.
func leftSets(before Before) (left []string, err error) {
	names, err := ipset.Names()
	for _, name := range names {
		if begins(name, foreignSets) && !before.stood(host.Ipset, name, "") {
			left = append(left, "ipset "+name+": ipset destroy "+name)
		}
	}
	return left, err
}
