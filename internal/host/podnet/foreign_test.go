package podnet

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// TestForeign: what a network of pods left that berth does not know how to take away is
// named, but for what was there before, ipsets, too; what is nobody's of them is not.
func TestForeign(t *testing.T) {
	ownNetwork(t)
	needs(t, "ip", "iptables-nft")
	sh(t, `ip link add flannel.1 type vxlan id 1 dstport 8472 dev lo; ip link add cali1234567890a type veth peer name mine; ip link add cilium_host type veth peer name cilium_net; ip link add kube-bridge type bridge; ip link add docker0 type bridge`)
	sh(t, `iptables-nft -N FLANNEL-FWD; iptables-nft -N cali-before; iptables-nft -t nat -N cali-nat; iptables-nft -N MINE`)
	c, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.AddChain(&nftables.Chain{Table: c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "flannel-ipv4"}), Name: "FLANNEL-X"})
	c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "calico-theirs"})
	c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv6, Name: "calico-before"})
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	makeSet(t, "KUBE-BEFORE")
	before := Before{Links: []string{"lo", "kube-bridge"}, Filter: set("ip filter cali-before", "ip6 calico-before")}
	stood, _ := filterNow(t)
	for _, name := range stood {
		if strings.HasPrefix(name, host.Ipset+" ") {
			before.Filter[name] = true
		}
	}
	for _, name := range []string{"cali40s:one", "KUBE-CLUSTER-IP", "mine"} {
		makeSet(t, name)
	}
	left, err := Network{}.Foreign(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"interface flannel.1: ip link delete flannel.1", "interface cali1234567890a: ip link delete cali1234567890a",
		"interface cilium_host: ip link delete cilium_host", "interface cilium_net: ip link delete cilium_net",
		"chain FLANNEL-FWD of table ip filter, and what leads to it", "chain cali-nat of table ip nat, and what leads to it",
		"table ip flannel-ipv4: nft delete table ip flannel-ipv4", "table inet calico-theirs: nft delete table inet calico-theirs",
		"ipset cali40s:one: ipset destroy cali40s:one", "ipset KUBE-CLUSTER-IP: ipset destroy KUBE-CLUSTER-IP",
	}
	slices.Sort(left)
	slices.Sort(want)
	if diff := cmp.Diff(want, left); diff != "" {
		t.Error(diff)
	}
}

// makeSet makes an ipset of addresses.
func makeSet(t *testing.T, name string) {
	t.Helper()
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e := netlink.NewAttributeEncoder()
	e.Uint8(1, 6)                     // IPSET_ATTR_PROTOCOL
	e.String(2, name)                 // IPSET_ATTR_SETNAME
	e.String(3, "hash:ip")            // IPSET_ATTR_TYPENAME
	e.Uint8(4, 0)                     // IPSET_ATTR_REVISION
	e.Uint8(5, unix.AF_INET)          // IPSET_ATTR_FAMILY
	e.Bytes(7|unix.NLA_F_NESTED, nil) // IPSET_ATTR_DATA
	attributes, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Execute(netlink.Message{
		Header: netlink.Header{Type: 6<<8 | 2, Flags: netlink.Request | netlink.Acknowledge | netlink.Create | netlink.Excl}, // IPSET_CMD_CREATE
		Data:   append([]byte{unix.AF_INET, 0, 0, 0}, attributes...),
	})
	if err != nil {
		t.Fatalf("make ipset %s: %v", name, err)
	}
}
