package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPodsOfTwoNodesTalk proves the lab's routes: a pod of one node reaches a
// pod of another by its address.
func TestPodsOfTwoNodesTalk(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	ips := map[string]string{"left": "10.99.0.61", "right": "10.99.0.62"}
	nodes := map[string]*lab.Node{}
	for name, ip := range ips {
		nodes[name] = addNode(t, l, lab.NodeConfig{Name: name, UserData: handWritten(t, l, ip), WithoutBerth: true, IP: addr(t, ip)})
	}
	for name, n := range nodes {
		usePodNetwork(t, l, n)
		if _, err := l.WaitNodeReady(within(t, 90*time.Second), name); err != nil {
			t.Fatal(err)
		}
		runPod(t, l, "talk-"+name, name)
	}
	right := podIP(t, l, "talk-right")
	pid := pausePID(t, nodes["left"], "talk-left")
	if err := nodes["left"].Run(within(t, 20*time.Second), "nsenter", "-t", pid, "-n", "ping", "-c", "2", "-W", "5", right); err != nil {
		t.Fatal(err)
	}
}

// usePodNetwork writes the CNI configuration for the pod network that the
// cluster gave the node.
func usePodNetwork(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	node, err := l.WaitNode(within(t, 90*time.Second), n.Name, func(n *corev1.Node) bool { return n.Spec.PodCIDR != "" })
	if err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp","ipMasq":false,"ipam":{"type":"host-local","ranges":[[{"subnet":%q}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}`, node.Spec.PodCIDR)
	if err := n.WriteFile("/etc/cni/net.d/10-ptp.conflist", []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
}

func podIP(t *testing.T, l *lab.Lab, name string) string {
	t.Helper()
	p, err := l.Client().CoreV1().Pods("default").Get(within(t, 10*time.Second), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p.Status.PodIP
}

// pausePID is the process of a pod's only container, in the node's eyes.
func pausePID(t *testing.T, n *lab.Node, pod string) string {
	t.Helper()
	script := `for t in $(ctr -n k8s.io containers ls -q "labels.\"io.kubernetes.pod.name\"==` + pod + `"); do ctr -n k8s.io tasks ls | awk -v t=$t '$1==t {print $2}'; done | head -1`
	out, err := n.Output(within(t, 10*time.Second), "sh", "-c", script)
	if err != nil || strings.TrimSpace(out) == "" {
		t.Fatalf("find process of %s: %q %v", pod, out, err)
	}
	return strings.TrimSpace(out)
}

// TestExtension checks the message of the CustomScript extension and the files
// that it leaves, on a machine that does nothing by itself.
func TestExtension(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := addNode(t, l, lab.NodeConfig{Name: "bare", Flavour: lab.Bare, WithoutBerth: true, UserData: []byte("#cloud-config\n{}\n")})
	ctx := within(t, time.Minute)
	if v, err := n.WaitBooted(ctx); err != nil || v != "running" {
		t.Fatalf("boot: %q %v", v, err)
	}
	if out := run(t, n, "systemctl", "list-timers", "--all", "--no-legend"); out != "" {
		t.Errorf("timers of the distribution:\n%s", out)
	}
	msg, code, err := n.RunExtension(ctx, "head -c 5000 /dev/zero | tr '\\0' a; echo oops >&2")
	want := "Enable succeeded: \n[stdout]\n" + strings.Repeat("a", 4096) + "\n[stderr]\noops\n"
	if err != nil || code != 0 || msg != want {
		t.Errorf("got %q, %d, %v", msg, code, err)
	}
	msg, code, err = n.RunExtension(ctx, "echo no; exit 52")
	want = "Enable failed: failed to execute command: command terminated with exit status=52\n[stdout]\nno\n\n\n[stderr]\n"
	if err != nil || code != 52 || msg != want {
		t.Errorf("got %q, %d, %v", msg, code, err)
	}
	if b, err := n.ReadFile("/var/lib/waagent/custom-script/download/1/stdout"); err != nil || string(b) != "no\n" {
		t.Errorf("stdout of run 1: %q %v", b, err)
	}
}
