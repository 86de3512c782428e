package e2e

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restricted asks for pods that do not reach the instance metadata.
func restricted(c *aksnodeconfigv1.Configuration) {
	c.ImdsRestrictionConfig = &aksnodeconfigv1.ImdsRestrictionConfig{EnableImdsRestriction: true, InsertImdsRestrictionRuleToMangleTable: true}
}

// platform are the addresses of the cloud's own services, and one more port of
// theirs that nobody forbids.
var platform = []string{serve.IMDSAddress, serve.WireServerAddress, serve.HostPluginAddress, "168.63.129.16:8080"}

// servePlatform answers a node and its pods at all of them until the test ends.
func servePlatform(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	pods := netip.MustParsePrefix(routeTo(t, l, n))
	services := map[netip.Addr]*serviceOfCloud{}
	for _, address := range platform {
		known := netip.MustParseAddrPort(address)
		at := services[known.Addr()]
		if at == nil {
			at = newService(t, l, address)
			at.reachesNode(t, n)
			at.reaches(t, pods)
			services[known.Addr()] = at
		}
		s := serve.Start(at.listen(t, known.Port()), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "platform") }))
		t.Cleanup(func() { _ = s.Close() })
	}
}

// routeTo lets answers find the pods of a node, whose network it returns: the cloud's
// network does that.
func routeTo(t *testing.T, l *lab.Lab, n *lab.Node) string {
	t.Helper()
	node, err := l.Client().CoreV1().Nodes().Get(within(t, 10*time.Second), n.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	route := node.Spec.PodCIDR + " via " + n.IP.String()
	if out, err := ip(l, "route replace "+route); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _, _ = ip(l, "route del "+route) })
	return node.Spec.PodCIDR
}

// fromPod are the addresses that answer to the node's only pod, once it has its
// network: containerd makes the namespace first and the route last.
func fromPod(t *testing.T, n *lab.Node) []string {
	t.Helper()
	if err := n.WaitFor(within(t, time.Minute), "sh", "-c", `ns=$(ip netns list | cut -d' ' -f1); test -n "$ns" && ip -n "$ns" route | grep -q ^default`); err != nil {
		t.Fatal(err)
	}
	return answers(t, n, "ip", "netns", "exec", strings.Fields(run(t, n, "ip", "netns", "list"))[0])
}

// answers are the addresses that answer where via leads; all are asked at once, as each has
// three seconds: a packet that was lost is sent again after one (RFC 6298), so one second
// does not tell it from one that is dropped.
func answers(t *testing.T, n *lab.Node, via ...string) []string {
	t.Helper()
	results, errs := make([]lab.Result, len(platform)), make([]error, len(platform))
	ctx := within(t, 20*time.Second)
	var asked sync.WaitGroup
	for i, address := range platform {
		asked.Go(func() {
			results[i], errs[i] = n.Exec(ctx, append(slices.Clone(via), "curl", "-sS", "-m", "3", "http://"+address)...)
		})
	}
	asked.Wait()
	out := []string{}
	for i, r := range results {
		switch {
		case errs[i] != nil:
			t.Fatal(errs[i])
		case r.Code == 0 && string(r.Stdout) == "platform\n":
			out = append(out, platform[i])
		case r.Code != 28: // anything but silence is no drop
			t.Errorf("%s: exit code %d, %s", platform[i], r.Code, r.Stderr)
		}
	}
	return out
}

// kept proves that the node's pod reaches what nobody forbids, and no more.
func kept(t *testing.T, when string, n *lab.Node) {
	t.Helper()
	if diff := cmp.Diff(platform[3:], fromPod(t, n)); diff != "" {
		t.Errorf("%s (-want +got): %s\n%s", when, diff, run(t, n, "nft", "list", "ruleset"))
	}
}

// open proves that it is the table that keeps the pod from them.
func open(t *testing.T, when string, n *lab.Node) {
	t.Helper()
	if diff := cmp.Diff(platform, fromPod(t, n)); diff != "" {
		t.Errorf("%s (-want +got): %s", when, diff)
	}
}

// ownTable is what nft shows of a restricted node.
const ownTable = `table inet berth {
	chain wireserver {
		type filter hook forward priority filter; policy accept;
		ip daddr 168.63.129.16 tcp dport 80 drop comment "pods do not reach the WireServer"
		ip daddr 168.63.129.16 tcp dport 32526 drop comment "pods do not reach the WireServer"
	}

	chain metadata {
		type filter hook forward priority mangle; policy accept;
		ip daddr 169.254.169.254 tcp dport 80 drop comment "pods do not reach the instance metadata"
	}
}
`

// TestPodsAreKeptFromThePlatform: from the first pod on, after somebody emptied the
// packet filter, and after a boot in which nobody runs but systemd and kubelet.
func TestPodsAreKeptFromThePlatform(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := addNode(t, l, lab.NodeConfig{Name: "kept", UserData: customData(t, nodeConfig(t, l, restricted))})
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	runPod(t, l, "kept", n.Name)
	servePlatform(t, l, n)
	kept(t, "as provisioned", n)
	if diff := cmp.Diff(platform, answers(t, n)); diff != "" {
		t.Errorf("the node itself (-want +got): %s", diff)
	}
	if got := run(t, n, "nft", "list", "table", "inet", "berth"); got != ownTable {
		t.Error(cmp.Diff(ownTable, got))
	}
	planIsEmpty(t, l, n)
	t.Run("changed", func(t *testing.T) { filterChanges(t, l, n) })
	t.Run("forwarding", func(t *testing.T) {
		run(t, n, "iptables", "-P", "FORWARD", "DROP")
		if got := fromPod(t, n); len(got) > 0 {
			t.Errorf("with the policy that docker sets the pod reaches %v", got)
		}
		run(t, n, "systemctl", "restart", "kubelet")
		kept(t, "kubelet started again", n)
	})
	t.Run("kubelet starts", func(t *testing.T) {
		run(t, n, "nft", "flush", "ruleset")
		open(t, "emptied", n)
		run(t, n, "systemctl", "restart", "kubelet")
		kept(t, "kubelet started again", n)
	})
	t.Run("boot", func(t *testing.T) {
		run(t, n, "systemctl", "disable", "aks-node-controller.service")
		if err := n.Reboot(within(t, rebootTime)); err != nil {
			t.Fatal(err)
		}
		awaitHeartbeat(t, l, n.Name, time.Now())
		kept(t, "after a boot", n)
		run(t, n, "systemctl", "enable", "aks-node-controller.service")
		planIsEmpty(t, l, n)
	})
	t.Run("lifted", func(t *testing.T) {
		if err := n.WriteFile(configPath, document(t, nodeConfig(t, l)), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, n, berthPath, "apply", "-f", configPath)
		if diff := cmp.Diff([]string{platform[0], platform[3]}, fromPod(t, n)); diff != "" {
			t.Errorf("without the restriction (-want +got): %s", diff)
		}
	})
}

// filterChanges: what others do to the table is in the plan, and repaired; what is
// in other tables is theirs.
func filterChanges(t *testing.T, l *lab.Lab, n *lab.Node) {
	run(t, n, "iptables-nft", "-A", "FORWARD", "-p", "tcp", "--dport", "9", "-j", "DROP")
	run(t, n, "iptables-legacy", "-A", "INPUT", "-p", "tcp", "--dport", "9", "-j", "DROP")
	others := func() string {
		return run(t, n, "nft", "--stateless", "list", "table", "ip", "filter") + run(t, n, "iptables-legacy", "-S")
	}
	before := others()
	for reason, change := range map[string]string{
		"the table is absent":                                     "delete table inet berth",
		"rule 1 of chain metadata is not berth's":                 "insert rule inet berth metadata accept",
		"lacks chain wireserver at forward 0: drop tcp":           "flush chain inet berth wireserver",
		"chain more is not berth's":                               "add chain inet berth more",
		"a flag of the table is not berth's":                      "add table inet berth { flags dormant; }",
		"rule 3 of chain wireserver is not berth's":               "add rule inet berth wireserver ct state new counter",
		"lacks chain metadata at forward -150: drop tcp to 169.2": "flush chain inet berth metadata",
	} {
		run(t, n, append([]string{"nft"}, strings.Fields(change)...)...)
		p := plan(t, n)
		if len(p.Actions) != 1 || p.Actions[0].ID != "nftables:berth" || !strings.HasPrefix(p.Actions[0].Reason, reason) {
			t.Errorf("%s: %+v", change, p.Actions)
		}
		run(t, n, berthPath, "apply", "-f", configPath)
		if got := run(t, n, "nft", "list", "table", "inet", "berth"); got != ownTable {
			t.Errorf("%s: %s", change, cmp.Diff(ownTable, got))
		}
		planIsEmpty(t, l, n)
	}
	kept(t, "repaired", n)
	if diff := cmp.Diff(before, others()); diff != "" {
		t.Errorf("tables of others: %s", diff)
	}
}

// noNetfilter runs a program for which the kernel has no packet filter: a socket of
// netlink's protocol 12 is answered as a kernel without nf_tables answers,
// netlink_create in net/netlink/af_netlink.c. It is a filter of seccomp(2):
// struct sock_filter is code, jump if true, jump if false, value.
const noNetfilter = `import ctypes, os, platform, struct, sys
socket = {"x86_64": 41, "aarch64": 198}[platform.machine()]
number, first, third, allow = 0, 16, 32, (6, 0, 0, 0x7FFF0000)
program = b"".join(struct.pack("HBBI", *i) for i in [
    (0x20, 0, 0, number), (0x15, 0, 5, socket), (0x20, 0, 0, first), (0x15, 0, 3, 16),  # AF_NETLINK
    (0x20, 0, 0, third), (0x15, 0, 1, 12), (6, 0, 0, 0x50000 | 93), allow])  # NETLINK_NETFILTER, EPROTONOSUPPORT
code = ctypes.create_string_buffer(program, len(program))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(struct.pack("HP", 8, ctypes.addressof(code)))):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
`

// TestNothingFailsOpen: a security setting that can't be put in force ends the run
// with its code, and the machine stays as it is.
func TestNothingFailsOpen(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	m := &badMachine{l, addNode(t, l, lab.NodeConfig{Name: "open"})}
	if _, err := m.node.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := l.AwaitSigner(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	provision := []string{controllerPath, "provision", "--provision-config=" + configPath}
	powerless := append([]string{"setpriv", "--bounding-set=-net_admin"}, provision...)
	without := append([]string{"python3", "-c", noNetfilter}, provision...)
	m.each(t, []badCase{
		{name: "packet filter", config: m.document(t), args: powerless, code: 244, says: []string{"table inet berth", "operation not permitted"}, hint: "nf_tables"},
		{name: "metadata", config: m.document(t, restricted), args: powerless, code: 174, field: "imds_restriction_config",
			says: []string{"table inet berth", "operation not permitted"}, hint: "nf_tables"},
		{name: "no nf_tables", config: m.document(t), args: without, code: 244, says: []string{"table inet berth", "protocol not supported"}, hint: "modprobe nf_tables"},
		{name: "no nf_tables for the metadata", config: m.document(t, restricted), args: without, code: 174, field: "imds_restriction_config",
			says: []string{"table inet berth", "protocol not supported"}, hint: "modprobe nf_tables"},
	})
	t.Run("keys", func(t *testing.T) {
		run(t, m.node, "sh", "-c", "cp -p "+serverConfig+" /root/config; echo Colour blue >>"+serverConfig)
		m.noNode(t, withoutKeys, 178, "disable_pubkey_auth", "Bad configuration option: Colour")
		run(t, m.node, "cp", "-p", "/root/config", serverConfig)
	})
	t.Run("SSH", func(t *testing.T) {
		run(t, m.node, "sh", "-c", `mkdir -p /etc/systemd/system/ssh.service.d; printf '[Unit]\nRefuseManualStop=yes\n' >/etc/systemd/system/ssh.service.d/refuse.conf; systemctl daemon-reload`)
		m.noNode(t, withoutSSH, 172, "enable_ssh", "ssh.service")
		run(t, m.node, "sh", "-c", "rm -r /etc/systemd/system/ssh.service.d; systemctl daemon-reload")
	})
	m.configure(t, m.document(t, restricted, withoutSSH))
	run(t, m.node, controllerPath, "provision", "--provision-config="+configPath)
	if _, err := l.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Error(err)
	}
}

// noNode runs provisioning, which must fail with a code, and start no kubelet.
func (m *badMachine) noNode(t *testing.T, edit func(*aksnodeconfigv1.Configuration), code int, field, says string) {
	t.Helper()
	m.configure(t, m.document(t, edit))
	r := m.exec(t, controllerPath, "provision", "--provision-config="+configPath)
	if r.Code != code || !containsAll(string(r.Stderr), says, field) {
		t.Errorf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if st := m.exec(t, "systemctl", "is-active", "kubelet"); strings.TrimSpace(string(st.Stdout)) == "active" {
		t.Error("kubelet runs")
	}
}
