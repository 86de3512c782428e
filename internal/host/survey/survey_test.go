package survey

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
)

const table4 = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	0101A8C0	0003	0	0	100	00000000	0	0	0
eth0	0001A8C0	00000000	0001	0	0	100	00FFFFFF	0	0	0
lo	0100630A	00000000	0201	0	0	0	FFFFFFFF	0	0	0
down	0001A8C0	00000000	0000	0	0	100	00FFFFFF	0	0	0
`

const table6 = `fe800000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
fe800000000000000000000000000002 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001     eth0
`

func TestRoutes(t *testing.T) {
	var got []string
	for _, r := range append(routes4(table4), routes6(table6)...) {
		got = append(got, r.Interface+" "+r.To.String())
	}
	want := []string{"eth0 0.0.0.0/0", "eth0 192.168.1.0/24", "eth0 fe80::/64", "eth0 ::/0"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

const sockets = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2808 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22127 1 0 100 0 0 10 0
   1: 0100007F:2809 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 22128 1 0 100 0 0 10 0
`

const sockets6 = `   0: 00000000000000000000000001000000:280A 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1 0 100 0 0 10 0
   1: 0000000000000000FFFF00000100007F:280B 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 8 1 0 100 0 0 10 0
`

func TestListeners(t *testing.T) {
	want := []Listener{
		{netip.MustParseAddr("127.0.0.1"), 10248, 22127}, {netip.MustParseAddr("::1"), 10250, 7}, {netip.MustParseAddr("127.0.0.1"), 10251, 8},
	}
	got := append(listeners(sockets), listeners(sockets6)...)
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
		t.Error(d)
	}
}

// TestTheMachineItself reads this one: what it must have is found.
func TestTheMachineItself(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	all, err := Machine{}.Listeners()
	if err != nil {
		t.Fatal(err)
	}
	var holder string
	for _, s := range all {
		if int(s.Port) == port {
			holder = Machine{}.Holder(s.Inode)
		}
	}
	if !strings.Contains(holder, "survey") {
		t.Errorf("the holder of this test's socket is %q", holder)
	}
	s, err := Machine{}.Space("/nowhere/at/all")
	if err != nil || s.Total == 0 || s.Free > s.Total {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := (Machine{}).Routes(); err != nil {
		t.Error(err)
	}
	if _, err := (Machine{}).Addresses(); err != nil {
		t.Error(err)
	}
}

func TestDrops(t *testing.T) {
	drop, accept := nftables.ChainPolicyDrop, nftables.ChainPolicyAccept
	for name, c := range map[string]struct {
		chain nftables.Chain
		want  bool
	}{
		"drops":         {nftables.Chain{Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Policy: &drop}, true},
		"accepts":       {nftables.Chain{Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Policy: &accept}, false},
		"of forwarding": {nftables.Chain{Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward, Policy: &drop}, false},
		"not a base":    {nftables.Chain{}, false},
	} {
		if got := drops(&c.chain); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzProc(f *testing.F) {
	for _, text := range []string{table4, table6, sockets, sockets6, ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range append(routes4(text), routes6(text)...) {
			if !r.To.IsValid() || r.To != r.To.Masked() {
				t.Errorf("route to %v", r.To)
			}
		}
		for _, l := range listeners(text) {
			if !l.Address.IsValid() {
				t.Errorf("%+v", l)
			}
		}
	})
}
