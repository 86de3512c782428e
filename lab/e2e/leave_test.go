package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// adminPath is where a test lays the cluster's administrator's kubeconfig.
const adminPath = "/run/admin.conf"

// asItIs is a machine: its tree, and what lives on it.
type asItIs struct {
	Tree map[string]lab.Entry
	Live map[string]string
}

// liveState are commands that print what lives on a machine, without what counts up.
var liveState = map[string]string{
	"addrs":   "ip -o addr | sed 's/^[0-9]*: //; s/ *valid_lft .*//'",
	"rules":   "ip rule; ip -6 rule",
	"links":   "ip -o link | sed 's/^[0-9]*: //; s/@if[0-9]*//; s/ qlen .*//'",
	"routes":  "ip route; ip -6 route | sed 's/ expires .*//'",
	"nft":     "nft list ruleset | sed 's/packets [0-9]* bytes [0-9]*//'",
	"mounts":  "sort /proc/mounts",
	"sysctl":  `sysctl -a 2>/dev/null | grep -vE '^(fs\.(file-nr|inode-|dentry-|quota\.|aio-nr)|kernel\.(random|ns_last_pid|pty\.nr)|net\.netfilter\.nf_conntrack_count|net\.ipv[46]\.(conf|neigh)\.(cbr0|cni0|veth))'`,
	"slices":  "systemctl list-units --all --plain --no-legend 'kubepods*' | cat",
	"groups":  "find /sys/fs/cgroup -type d -name 'kubepods*' -o -type d -name 'cri-containerd*'",
	"units":   "systemctl list-unit-files --no-legend kubelet.service containerd.service; systemctl is-active kubelet.service containerd.service; true",
	"modules": "ls /etc/modules-load.d",
}

func look(t *testing.T, n *lab.Node, skip ...string) asItIs {
	t.Helper()
	tree, err := n.Tree(func(path string) bool {
		for _, p := range skip {
			if path == p || strings.HasPrefix(path, p+"/") {
				return true
			}
		}
		return lab.ChangesByItself(path)
	}, "/", "/var/lib/kubelet", "/var/lib/containerd")
	if err != nil {
		t.Fatal(err)
	}
	live := map[string]string{}
	for name, command := range liveState {
		live[name] = run(t, n, "sh", "-c", command)
	}
	return asItIs{tree, live}
}

// machineOf boots a machine with a configuration that nobody has used yet. What others
// have on it is there before berth comes: a mount below kubelet's directory, and rules.
func machineOf(t *testing.T, l *lab.Lab, name string, flavour lab.Flavour, cfg *aksnodeconfigv1.Configuration, files map[string]lab.File) *lab.Node {
	t.Helper()
	n := addNode(t, l, lab.NodeConfig{Name: name, Flavour: flavour, Files: files})
	if _, err := n.WaitBooted(within(t, 2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	kubeletWas(t, n)
	admin, err := os.ReadFile(l.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{configPath: document(t, cfg), adminPath: admin} {
		if err := n.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, n, "sh", "-ec", `mkdir -p /var/lib/kubelet/theirs; mount -t tmpfs theirs /var/lib/kubelet/theirs; echo x >/var/lib/kubelet/theirs/file
iptables -N THEIRS; iptables -A FORWARD -s 192.0.2.1 -j THEIRS; iptables -t nat -N THEIRS
iptables -t nat -N CNI-HOSTPORT-DNAT; iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
iptables -t nat -N CNI-DN-theirs; iptables -t nat -A CNI-HOSTPORT-DNAT -p tcp --dport 8080 -j CNI-DN-theirs
iptables -t mangle -N KUBE-THEIRS; nft add table ip cni_hostport`)
	return n
}

// kubeletWas sets the kernel's parameters that kubelet writes to what it writes. They are
// those of the lab's host: a node that runs beside would find others.
func kubeletWas(t *testing.T, n *lab.Node) {
	t.Helper()
	run(t, n, "sysctl", "-q", "-w", "vm.overcommit_memory=1", "kernel.panic=10", "kernel.panic_on_oops=1")
}

// provisioned makes the machine a node that is Ready.
func provisioned(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	run(t, n, controllerPath, "provision", "--provision-config", configPath)
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
}

// leaves runs berth leave and returns what it says and its exit code.
func leaves(t *testing.T, n *lab.Node, flags ...string) (string, int) {
	t.Helper()
	r, err := n.Exec(within(t, 3*time.Minute), append([]string{berthPath, "leave"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Stdout) + string(r.Stderr), r.Code
}

func hasNode(t *testing.T, l *lab.Lab, name string) bool {
	t.Helper()
	_, err := l.Client().CoreV1().Nodes().Get(within(t, 10*time.Second), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// proxyRules are some of kube-proxy's and of CNI plugins, and values that it sets.
const proxyRules = `iptables -t nat -N KUBE-SERVICES; iptables -t nat -A PREROUTING -m comment --comment 'kubernetes service portals' -j KUBE-SERVICES
iptables -N KUBE-FORWARD; iptables -A FORWARD -j KUBE-FORWARD; iptables -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
iptables -t nat -N CNI-DN-pod; iptables -t nat -A CNI-HOSTPORT-DNAT -p tcp --dport 9090 -j CNI-DN-pod; iptables -t nat -N CNI-HOSTPORT-MASQ
iptables -t nat -A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-MASQ; nft add table ip kube-proxy
sysctl -q -w net.ipv4.conf.all.route_localnet=1 net.netfilter.nf_conntrack_tcp_timeout_established=86400 net.netfilter.nf_conntrack_tcp_timeout_close_wait=3600`

// TestLeave: a bare machine that was made a node with a pod on it is given back as it
// was, and can be made a node again. Programs of others with the names of a node's run on.
func TestLeave(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	reg, progs := serveImages(t, l), servePrograms(t, l)
	cfg := nodeConfig(t, l, progs.Configure, func(c *aksnodeconfigv1.Configuration) {
		c.KubeBinaryConfig.PodInfraContainerImageUrl = reg.pushPause(t, l)
	})
	n := machineOf(t, l, "leave-bare", lab.Bare, cfg, reg.trust())
	theirs := namesakes(t, n)
	before := look(t, n)
	if out, code := leaves(t, n); code != 0 || !strings.Contains(out, "nothing to do") {
		t.Errorf("a machine without berth: exit code %d\n%s", code, out)
	}
	provisioned(t, l, n)
	runWorkload(t, l, reg.workload, "leave-pod", n.Name)
	run(t, n, "sh", "-ec", proxyRules)

	out, code := leaves(t, n, "--kubeconfig", adminPath)
	if code != 1 || !strings.Contains(out, "default/leave-pod") || !strings.Contains(out, "--force") {
		t.Errorf("with a pod that runs: exit code %d\n%s", code, out)
	}
	if node, err := l.Client().CoreV1().Nodes().Get(within(t, 10*time.Second), n.Name, metav1.GetOptions{}); err != nil || !ready(node) || node.Spec.Unschedulable {
		t.Errorf("a leave that was refused changed the node: %v", err)
	}

	start := time.Now()
	out, code = leaves(t, n, "--force", "--kubeconfig", adminPath)
	t.Logf("leave took %.2f s:\n%s", time.Since(start).Seconds(), out)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	if diff := cmp.Diff(before, look(t, n)); diff != "" {
		t.Error(diff)
	}
	if hasNode(t, l, n.Name) {
		t.Error("the Node is still there")
	}
	if out, code := leaves(t, n); code != 0 || !strings.Contains(out, "nothing to do") {
		t.Errorf("again: exit code %d\n%s", code, out)
	}
	run(t, n, "sh", "-ec", "kill "+theirs) // fails where one has ended
	provisioned(t, l, n)
}

// namesakes starts programs of others that are called as those of a node, and returns their
// process ids.
func namesakes(t *testing.T, n *lab.Node) string {
	t.Helper()
	return strings.Join(strings.Fields(run(t, n, "sh", "-ec", `for name in kubelet containerd runc; do
	cp /usr/bin/sleep /tmp/$name; setsid /tmp/$name infinity </dev/null >/dev/null 2>&1 & echo $!
done`)), " ")
}

// TestLeavePrebaked: what the image brought stays, and is named; so does the Node that
// nobody deletes. The machine is its only owner's.
func TestLeavePrebaked(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := machineOf(t, l, "leave-prebaked", lab.Prebaked, nodeConfig(t, l), nil)
	before := look(t, n, "/var/lib/containerd")
	provisioned(t, l, n)
	start := time.Now()
	out, code := leaves(t, n, "--owner", "aks")
	t.Logf("leave took %.2f s:\n%s", time.Since(start).Seconds(), out)
	if code != 4 || !strings.Contains(out, "kubectl delete node "+n.Name) {
		t.Errorf("exit code %d", code)
	}
	if diff := cmp.Diff(before, look(t, n, "/var/lib/containerd")); diff != "" {
		t.Error(diff)
	}
	if !hasNode(t, l, n.Name) {
		t.Error("somebody deleted the Node")
	}
	if out, code := leaves(t, n); code != 0 || !strings.Contains(out, "nothing to do") {
		t.Errorf("again, of all owners: exit code %d\n%s", code, out)
	}
}

// TestLeaveKilled kills leave at random moments: the next run ends what it began.
func TestLeaveKilled(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := machineOf(t, l, "leave-killed", lab.Prebaked, nodeConfig(t, l), nil)
	before := look(t, n, "/var/lib/containerd")
	for i := range 6 {
		provisioned(t, l, n)
		moment := time.Duration(rand.IntN(500)) * time.Millisecond
		r, err := n.Exec(within(t, time.Minute), "timeout", "-s", "KILL", fmt.Sprintf("%.3f", moment.Seconds()+0.001), berthPath, "leave", "--kubeconfig", adminPath)
		if err != nil {
			t.Fatal(err)
		}
		out, code := leaves(t, n, "--kubeconfig", adminPath)
		t.Logf("round %d: killed after %s (exit code %d), then exit code %d", i, moment, r.Code, code)
		if diff := cmp.Diff(before, look(t, n, "/var/lib/containerd")); diff != "" {
			t.Errorf("killed after %s, exit code %d\n%s%s\n%s", moment, code, r.Stderr, out, diff)
		}
		if hasNode(t, l, n.Name) {
			t.Error("the Node is still there")
		}
	}
}
