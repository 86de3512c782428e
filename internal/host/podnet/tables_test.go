package podnet

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host/machine"
)

const kubeRules = `
$I -t nat -N KUBE-SERVICES; $I -t nat -N KUBE-SEP-A; $I -t nat -N CNI-DN-1
$I -t nat -A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
$I -t nat -A OUTPUT -j KUBE-SERVICES
$I -t nat -A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j KUBE-SEP-A
$I -t nat -A KUBE-SEP-A -p tcp -j DNAT --to-destination 10.0.0.1:6443
$I -t filter -N KUBE-FORWARD
$I -t filter -A FORWARD -j KUBE-FORWARD
$I -t filter -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
`

// TestRemoveTables: what the nft flavour of iptables keeps in nf_tables. A table that
// has nothing else goes; in one that others use, too, their rules stay.
func TestRemoveTables(t *testing.T) {
	ownNetwork(t)
	needs(t, "iptables-nft")
	sh(t, strings.ReplaceAll(kubeRules, "$I", "iptables-nft"))
	sh(t, `iptables-nft -t filter -A INPUT -j KUBE-FORWARD; iptables-nft -t filter -N MINE; iptables-nft -t filter -A FORWARD -s 192.0.2.1 -j MINE; iptables-nft -t filter -A MINE -j DROP; ip6tables-nft -t mangle -N KUBE-KUBELET-CANARY`)
	removed, err := removeTables(context.Background(), Before{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"table ip nat", "chain KUBE-FORWARD of table ip filter", "chain INPUT of table ip filter", "table ip6 mangle"}
	slices.Sort(removed)
	slices.Sort(want)
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Error(diff)
	}
	rules := sh(t, "iptables-nft -S; iptables-nft -t nat -S; ip6tables-nft -t mangle -S")
	if strings.Contains(rules, "KUBE-") || strings.Contains(rules, "CNI-") {
		t.Error(rules)
	}
	for _, line := range []string{"-A FORWARD -s 192.0.2.1/32 -j MINE", "-A MINE -j DROP"} {
		if !strings.Contains(rules, line) {
			t.Errorf("no %q in\n%s", line, rules)
		}
	}
	if removed, err := removeTables(context.Background(), Before{}); err != nil || len(removed) != 0 {
		t.Errorf("again: %v, %v", removed, err)
	}
}

// TestRemoveManyChains: kube-proxy's chains of a large cluster, in a table that others
// use, too.
func TestRemoveManyChains(t *testing.T) {
	ownNetwork(t)
	needs(t, "iptables-nft-restore")
	const services = 5000
	var chains, rules strings.Builder
	for i := range services {
		fmt.Fprintf(&chains, ":KUBE-SVC-%d - [0:0]\n", i)
		fmt.Fprintf(&rules, "-A KUBE-SERVICES -d 10.1.%d.%d/32 -j KUBE-SVC-%d\n-A KUBE-SVC-%d -p tcp -j DNAT --to-destination 10.0.0.1:443\n", i/256, i%256, i, i)
	}
	file := t.TempDir() + "/rules"
	text := "*nat\n:KUBE-SERVICES - [0:0]\n:MINE - [0:0]\n" + chains.String() + "-A PREROUTING -j KUBE-SERVICES\n-A OUTPUT -s 192.0.2.1 -j MINE\n" + rules.String() + "COMMIT\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sh(t, "iptables-nft-restore < "+file)
	removed, err := removeTables(t.Context(), Before{})
	if err != nil || len(removed) <= services {
		t.Errorf("removed %d chains: %v", len(removed), err)
	}
	if left := sh(t, "iptables-nft -t nat -S"); strings.Contains(left, "KUBE-") || !strings.Contains(left, "-A OUTPUT -s 192.0.2.1/32 -j MINE") {
		t.Error(left)
	}
}

// TestRemoveTablesApart: a table that the kernel refuses to clean keeps no other.
func TestRemoveTablesApart(t *testing.T) {
	ownNetwork(t)
	needs(t, "iptables-nft")
	sh(t, strings.ReplaceAll(kubeRules, "$I", "iptables-nft"))
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	theirs := &nftables.Set{Table: &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "filter"}, Name: "theirs", IsMap: true, KeyType: nftables.TypeIPAddr, DataType: nftables.TypeVerdict}
	if err := c.AddSet(theirs, []nftables.SetElement{{Key: []byte{192, 0, 2, 1}, VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: "KUBE-FORWARD"}}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	removed, err := removeTables(t.Context(), Before{})
	if err == nil || !strings.Contains(err.Error(), "clean table ip filter") {
		t.Errorf("error: %v", err)
	}
	if diff := cmp.Diff([]string{"table ip nat"}, removed); diff != "" {
		t.Error(diff)
	}
	left, err := c.ListTables()
	if err != nil || len(left) != 1 || left[0].Name != "filter" {
		t.Errorf("left: %v, %v", left, err)
	}
}

func set(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, n := range names {
		all[n] = true
	}
	return all
}

// filterNow is the packet filter of the test's network: names, and the rules that the
// nft flavour of iptables knows.
func filterNow(t *testing.T) (names []string, rules string) {
	t.Helper()
	h, err := machine.New("/")
	if err != nil {
		t.Fatal(err)
	}
	all, err := h.FilterNames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		names = append(names, n.String())
	}
	slices.Sort(names)
	return names, sh(t, "for p in iptables ip6tables; do $p-nft-save | grep -v '^#' | sed 's/ \\[[0-9:]*\\]//'; done")
}

// TestRemoveKeepsWhatStood: chains and tables that have the names of a node's and were
// there before it was one stay with their rules, and what came among them goes.
func TestRemoveKeepsWhatStood(t *testing.T) {
	ownNetwork(t)
	needs(t, "iptables-nft", "ip6tables-nft")
	sh(t, `
iptables-nft -t nat -N CNI-HOSTPORT-DNAT; iptables-nft -t nat -N CNI-DN-theirs
iptables-nft -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
iptables-nft -t nat -A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 8080 -j CNI-DN-theirs
iptables-nft -t nat -A CNI-DN-theirs -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.88.0.2:80
iptables-nft -N KUBE-FORWARD; iptables-nft -A FORWARD -j KUBE-FORWARD; iptables-nft -A KUBE-FORWARD -s 192.0.2.7 -j DROP
iptables-nft -A INPUT -j ACCEPT; iptables-nft -D INPUT -j ACCEPT
ip6tables-nft -t mangle -A FORWARD -j ACCEPT; ip6tables-nft -t mangle -D FORWARD -j ACCEPT`)
	c, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kube-proxy", "cni_hostport"} {
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: name})
		c.AddChain(&nftables.Chain{Table: table, Name: "services"})
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	names, rules := filterNow(t)

	sh(t, strings.ReplaceAll(strings.ReplaceAll(kubeRules, "$I -t filter -N KUBE-FORWARD\n$I -t filter -A FORWARD -j KUBE-FORWARD\n$I -t filter -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\n", ""), "$I", "iptables-nft"))
	sh(t, `iptables-nft -t nat -A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 9090 -j CNI-DN-1
iptables-nft -N KUBE-FIREWALL; iptables-nft -A KUBE-FORWARD -j KUBE-FIREWALL; iptables-nft -A INPUT -j KUBE-FIREWALL
ip6tables-nft -t mangle -N KUBE-KUBELET-CANARY; ip6tables-nft -t mangle -A FORWARD -j KUBE-KUBELET-CANARY; ip6tables-nft -t nat -N KUBE-NODEPORTS`)
	c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv6, Name: "kube-proxy"})
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		removed, err := Network{}.Remove(t.Context(), Before{Filter: set(names...)})
		if err != nil || (len(removed) == 0) != again {
			t.Errorf("again %t: %v, %v", again, removed, err)
		}
		namesNow, rulesNow := filterNow(t)
		if diff := cmp.Diff(names, namesNow); diff != "" {
			t.Errorf("again %t: %s", again, diff)
		}
		if diff := cmp.Diff(rules, rulesNow); diff != "" {
			t.Errorf("again %t: %s", again, diff)
		}
	}
}

// TestRemoveIdleChains: CNI plugins take their rules back themselves, and leave the chain
// of iptables that they had them in. One that somebody uses stays, and so does all that
// iptables did not make.
func TestRemoveIdleChains(t *testing.T) {
	const masquerades = "$I -t nat -N CNI-1; $I -t nat -A POSTROUTING -j CNI-1; $I -t nat -D POSTROUTING -j CNI-1; $I -t nat -X CNI-1; "
	nat := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "nat"}
	postrouting := func(t *nftables.Table, priority nftables.ChainPriority) *nftables.Chain {
		return &nftables.Chain{Table: t, Name: "POSTROUTING", Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting, Priority: &priority}
	}
	for _, tc := range []struct {
		name, script string
		others       func(*nftables.Conn)
		removed      []string
	}{
		{"nothing else", masquerades, nil, []string{"table ip nat"}},
		{"a chain of others", masquerades + "$I -t nat -N THEIRS", nil, []string{"chain POSTROUTING of table ip nat"}},
		{"a rule of others", masquerades + "$I -t nat -A POSTROUTING -s 192.0.2.1 -j ACCEPT", nil, nil},
		{"a policy of others", "$I -P FORWARD DROP", nil, nil},
		{"a set of others", masquerades, func(c *nftables.Conn) {
			if err := c.AddSet(&nftables.Set{Table: nat, Name: "theirs", KeyType: nftables.TypeIPAddr}, nil); err != nil {
				t.Error(err)
			}
		}, []string{"chain POSTROUTING of table ip nat"}},
		{"a counter of others", masquerades, func(c *nftables.Conn) {
			c.AddObj(&nftables.NamedObj{Table: nat, Name: "theirs", Type: nftables.ObjTypeCounter, Obj: &expr.Counter{}})
		}, []string{"chain POSTROUTING of table ip nat"}},
		{"a limit of others", masquerades, func(c *nftables.Conn) {
			c.AddObj(&nftables.NamedObj{Table: nat, Name: "theirs", Type: nftables.ObjTypeLimit, Obj: &expr.Limit{Type: expr.LimitTypePkts, Rate: 1, Unit: expr.LimitTimeSecond}})
		}, []string{"chain POSTROUTING of table ip nat"}},
		{"a table without chains", "", func(c *nftables.Conn) { c.AddTable(nat) }, nil},
		{"a table that is none of iptables", "", func(c *nftables.Conn) {
			c.AddChain(postrouting(c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "nat"}), *nftables.ChainPriorityNATSource))
		}, nil},
		{"a chain at a priority of its own", "", func(c *nftables.Conn) { c.AddChain(postrouting(c.AddTable(nat), 50)) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ownNetwork(t)
			needs(t, "iptables-nft")
			sh(t, strings.ReplaceAll(tc.script, "$I", "iptables-nft"))
			c, err := dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tc.others != nil {
				tc.others(c)
				if err := c.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			removed, err := removeTables(t.Context(), Before{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.removed, removed); diff != "" {
				t.Error(diff)
			}
			chains, err := c.ListChains()
			if err != nil {
				t.Fatal(err)
			}
			is := slices.ContainsFunc(chains, func(c *nftables.Chain) bool { return slices.Contains(builtin, c.Name) })
			if had := tc.removed == nil && tc.name != "a table without chains"; is != had {
				t.Errorf("a chain of iptables is there: %t, want %t", is, had)
			}
		})
	}
}

// answers is a connection to a kernel that answers each request with an error.
func answers(t *testing.T, number unix.Errno) *nftables.Conn {
	t.Helper()
	c, err := nftables.New(nftables.WithTestDial(func(req []netlink.Message) ([]netlink.Message, error) {
		if len(req) == 0 {
			return nil, nil
		}
		req[0].Header.Flags = 0 // an error without attributes
		return nltest.Error(int(number), req)
	}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestKernelWithoutTables: nfnetlink answers EINVAL for a part that is not there.
func TestKernelWithoutTables(t *testing.T) {
	for number, none := range map[unix.Errno]bool{unix.EINVAL: true, unix.EOPNOTSUPP: true, unix.EPERM: false} {
		tables, err := tablesOf(answers(t, number), nftables.TableFamilyIPv4)
		if len(tables) > 0 || (err == nil) != none {
			t.Errorf("%v: %v, %v", number, tables, err)
		}
	}
}
