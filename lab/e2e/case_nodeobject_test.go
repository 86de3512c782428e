package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// TestCaseNodeObject follows the Node object of one machine: labels, taints, its
// deletion, an API server that is away, and the pod network that the Node gives it.
func TestCaseNodeObject(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := addNode(t, l, lab.NodeConfig{Name: "case-node", UserData: customData(t, nodeConfig(t, l))})
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name string
		run  func(*testing.T, *lab.Lab, *lab.Node)
	}{
		{"plan is empty", planIsEmpty}, {"labels", labelsFollow}, {"API server away", serverAway}, {"credential lost", credentialLost},
		{"deleted", deletedNode}, {"network gone", networkGone}, {"network template", networkTemplate}, {"taints", taintsReported},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, l, n) })
	}
}

// redocument gives the node another document.
func redocument(t *testing.T, l *lab.Lab, n *lab.Node, edit func(*aksnodeconfigv1.KubeletConfig)) {
	t.Helper()
	cfg := nodeConfig(t, l, func(c *aksnodeconfigv1.Configuration) { edit(c.KubeletConfig) })
	if err := n.WriteFile(configPath, document(t, cfg), 0o600); err != nil {
		t.Fatal(err)
	}
}

// applyDocument applies the document; it returns what berth says and the units
// that started anew.
func applyDocument(t *testing.T, n *lab.Node) (said string, restarts []string) {
	t.Helper()
	before := invocations(t, n)
	r, err := n.Exec(within(t, time.Minute), berthPath, "apply", "-f", configPath)
	if err != nil || r.Code != 0 {
		t.Fatalf("apply: %v, exit code %d\n%s%s", err, r.Code, r.Stdout, r.Stderr)
	}
	return string(r.Stdout) + string(r.Stderr), restarted(before, invocations(t, n))
}

func invocations(t *testing.T, n *lab.Node) string {
	t.Helper()
	return run(t, n, append([]string{"systemctl", "show", "-p", "InvocationID", "--value"}, watched...)...)
}

func nodeOf(t *testing.T, l *lab.Lab, n *lab.Node) *corev1.Node {
	t.Helper()
	node, err := l.Client().CoreV1().Nodes().Get(within(t, 10*time.Second), n.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// wantPlan compares a plan's actions.
func wantPlan(t *testing.T, n *lab.Node, want ...string) planned {
	t.Helper()
	p := plan(t, n)
	if d := cmp.Diff(append([]string{}, want...), p.ids()); d != "" {
		t.Fatalf("plan: %s", d)
	}
	return p
}

// nodeLabels are what the document is changed to. Of kubernetes.io a node may set
// the names of its own.
var nodeLabels = map[string]string{"agentpool": "other", "kubernetes.azure.com/mode": "user", "node.kubernetes.io/spot": "true", "kubelet.kubernetes.io/x": ""}

// labelsFollow: labels that change after registration are patched, also those that
// the API server lets a node set of its own kubernetes.io names, and kubelet runs on.
func labelsFollow(t *testing.T, l *lab.Lab, n *lab.Node) {
	redocument(t, l, n, func(k *aksnodeconfigv1.KubeletConfig) {
		k.KubeletNodeLabels = nodeLabels
	})
	const flags = "file:/etc/default/kubelet update"
	node := "node:" + n.Name
	wantPlan(t, n, flags, node+" update", node+"/kubernetes.azure.com/cluster delete")
	if _, restarts := applyDocument(t, n); len(restarts) > 0 {
		t.Errorf("restarted %q", restarts)
	}
	got := nodeOf(t, l, n).Labels
	for key := range got {
		if !slices.Contains([]string{"agentpool", "kubernetes.azure.com/mode", "node.kubernetes.io/spot", "kubelet.kubernetes.io/x", "kubernetes.azure.com/cluster"}, key) {
			delete(got, key)
		}
	}
	if d := cmp.Diff(nodeLabels, got); d != "" {
		t.Error(d)
	}
	planIsEmpty(t, l, n)
	if r, err := l.Kubectl(within(t, 20*time.Second), "label", "node", n.Name, "--overwrite", "agentpool=drift", "theirs=1"); err != nil || r.Code != 0 {
		t.Fatalf("%v\n%s", err, r.Stderr)
	}
	p := wantPlan(t, n, node+" update")
	if want := `label agentpool is "drift", want "other"`; p.Actions[0].Reason != want {
		t.Errorf("reason %q, want %q", p.Actions[0].Reason, want)
	}
	applyDocument(t, n)
	if got := nodeOf(t, l, n).Labels; got["agentpool"] != "other" || got["theirs"] != "1" {
		t.Errorf("labels %v", got)
	}
	planIsEmpty(t, l, n)
}

const (
	notCompared = "was not compared"
	netTemplate = "/etc/containerd/kubenet_template.conf"
	netFile     = "/etc/cni/net.d/10-containerd-net.conflist"
	drifted     = "file:" + netTemplate + " update"
)

// withoutServer runs f while the machine's packets to the API server are dropped or
// refused.
func withoutServer(t *testing.T, n *lab.Node, how string, f func()) {
	t.Helper()
	rule := []string{"OUTPUT", "-p", "tcp", "--dport", "443", "-j"}
	rule = append(rule, strings.Fields(how)...)
	run(t, n, append([]string{"iptables", "-I"}, rule...)...)
	defer run(t, n, append([]string{"iptables", "-D"}, rule...)...)
	f()
}

// serverAway: an API server that refuses or does not answer holds up no local
// repair, and that the Node is not known is a remark.
func serverAway(t *testing.T, l *lab.Lab, n *lab.Node) {
	for _, how := range []string{"DROP", "REJECT --reject-with tcp-reset"} {
		withoutServer(t, n, how, func() {
			run(t, n, "sh", "-c", "echo >>"+netTemplate+"; systemctl stop kubelet")
			start := time.Now()
			p := wantPlan(t, n, drifted, "unit:kubelet.service start")
			planned := time.Since(start)
			said, restarts := applyDocument(t, n)
			t.Logf("%s: plan %s, plan and apply %s", how, planned, time.Since(start))
			if !strings.Contains(strings.Join(p.Remarks, "\n"), notCompared) || !strings.Contains(said, notCompared) {
				t.Errorf("%s: remarks %q, apply says %s", how, p.Remarks, said)
			}
			if d := cmp.Diff([]string{"kubelet.service"}, restarts); d != "" {
				t.Error(d)
			}
			if p := wantPlan(t, n); p.code != 0 {
				t.Errorf("%s: exit code %d", how, p.code)
			}
		})
	}
	planIsEmpty(t, l, n)
}

// credentialLost: what is local is repaired before the API server is waited for.
func credentialLost(t *testing.T, l *lab.Lab, n *lab.Node) {
	run(t, n, "sh", "-c", "echo >>"+netTemplate+"; rm /var/lib/kubelet/kubeconfig")
	wantPlan(t, n, "credential:/var/lib/kubelet/kubeconfig issue", drifted, "unit:kubelet.service restart")
	withoutServer(t, n, "DROP", func() {
		r, err := n.Exec(within(t, time.Minute), berthPath, "apply", "-f", configPath, "--timeout", "3s")
		if err != nil || r.Code != 1 || !strings.Contains(string(r.Stderr), "check:apiserver") {
			t.Errorf("%v, exit code %d\n%s", err, r.Code, r.Stderr)
		}
		wantPlan(t, n, "credential:/var/lib/kubelet/kubeconfig issue", "unit:kubelet.service restart")
	})
	applyDocument(t, n)
	planIsEmpty(t, l, n)
}

// deletedNode: kubelet, which runs on without its Node, is started anew and creates
// it with the labels of the document.
func deletedNode(t *testing.T, l *lab.Lab, n *lab.Node) {
	awaitRegistration(t, n)
	before := nodeOf(t, l, n)
	node := deleteNode(t, l, n)
	wantPlan(t, n, node+" create", "podnetwork:"+netFile+" delete", "unit:kubelet.service restart")
	if _, restarts := applyDocument(t, n); !slices.Equal(restarts, []string{"kubelet.service"}) {
		t.Errorf("restarted %q", restarts)
	}
	planIsEmpty(t, l, n)
	awaitNetwork(t, l, n, "net-deleted")
	after := nodeOf(t, l, n)
	if after.UID == before.UID {
		t.Fatalf("uid %s, was %s", after.UID, before.UID)
	}
	if text := run(t, n, "cat", netFile); !strings.Contains(text, after.Spec.PodCIDR) {
		t.Errorf("the cluster gave %s, and %s is\n%s", after.Spec.PodCIDR, netFile, text)
	}
	delete(before.Labels, "theirs")
	if d := cmp.Diff(before.Labels, after.Labels); d != "" {
		t.Error(d)
	}
}

// awaitRegistration waits until the kubelet that runs has registered: one that a
// case before has just restarted would create a Node that is deleted meanwhile.
func awaitRegistration(t *testing.T, n *lab.Node) {
	t.Helper()
	const done = `journalctl --no-pager _PID=$(systemctl show -P MainPID kubelet) | grep -q "Successfully registered node"`
	if err := n.WaitFor(within(t, 30*time.Second), "sh", "-c", done); err != nil {
		t.Fatal(err)
	}
}

// deleteNode deletes the Node object, waits until a plan sees that, and returns its id
// in plans. A plan leaves the Node of a kubelet that started a moment ago to kubelet.
func deleteNode(t *testing.T, l *lab.Lab, n *lab.Node) string {
	t.Helper()
	awaitRegistration(t, n)
	if err := l.Client().CoreV1().Nodes().Delete(within(t, 10*time.Second), n.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	id := "node:" + n.Name
	if err := n.WaitFor(within(t, 30*time.Second), "sh", "-c", berthPath+" plan -f "+configPath+" | grep -q 'create "+id+"'"); err != nil {
		t.Fatal(err)
	}
	return id
}

// awaitNetwork waits until containerd has made the pod network's configuration and
// a pod of the node runs in it.
func awaitNetwork(t *testing.T, l *lab.Lab, n *lab.Node, pod string) {
	t.Helper()
	if err := n.WaitFor(within(t, 30*time.Second), "grep", "-q", `"bridge": "cbr0"`, netFile); err != nil {
		t.Fatal(err)
	}
	if _, err := l.WaitNodeReady(within(t, time.Minute), n.Name); err != nil {
		t.Fatal(err)
	}
	runPod(t, l, pod, n.Name)
	planIsEmpty(t, l, n)
}

// networkGone: containerd makes a configuration that is gone when kubelet starts,
// and not before.
func networkGone(t *testing.T, l *lab.Lab, n *lab.Node) {
	run(t, n, "rm", netFile)
	if _, err := l.WaitNode(within(t, time.Minute), n.Name, func(x *corev1.Node) bool { return !ready(x) }); err != nil {
		t.Fatal(err)
	}
	wantPlan(t, n, "unit:kubelet.service restart")
	applyDocument(t, n)
	awaitNetwork(t, l, n, "net-gone")
}

// networkTemplate: what containerd made of another template goes, and is made anew.
func networkTemplate(t *testing.T, l *lab.Lab, n *lab.Node) {
	run(t, n, "sed", "-i", "s/cbr0/cbr9/", netTemplate, netFile)
	wantPlan(t, n, drifted, "podnetwork:"+netFile+" delete", "unit:kubelet.service restart")
	if _, restarts := applyDocument(t, n); !slices.Equal(restarts, []string{"kubelet.service"}) {
		t.Errorf("restarted %q", restarts)
	}
	awaitNetwork(t, l, n, "net-template")
}

// taintsReported: a node may not change its taints, so an operator is told how, and
// kubelet, which goes by them when it registers, runs on. A Node that it creates again
// has them.
func taintsReported(t *testing.T, l *lab.Lab, n *lab.Node) {
	redocument(t, l, n, func(k *aksnodeconfigv1.KubeletConfig) {
		k.KubeletNodeLabels = nodeLabels
		k.KubeletFlags["--register-with-taints"] = "example.com/new=1:PreferNoSchedule"
	})
	const command = "taint nodes case-node --overwrite example.com/new=1:PreferNoSchedule"
	for range 2 {
		said, restarts := applyDocument(t, n)
		if !strings.Contains(said, "kubectl "+command) || len(restarts) > 0 {
			t.Errorf("restarted %q, apply says %s", restarts, said)
		}
	}
	if r, err := l.Kubectl(within(t, 20*time.Second), strings.Fields(command)...); err != nil || r.Code != 0 {
		t.Fatalf("%v\n%s", err, r.Stderr)
	}
	if p := wantPlan(t, n); strings.Contains(strings.Join(p.Remarks, "\n"), "taint") {
		t.Errorf("remarks %q", p.Remarks)
	}
	deleteNode(t, l, n)
	if _, restarts := applyDocument(t, n); !slices.Equal(restarts, []string{"kubelet.service"}) {
		t.Errorf("restarted %q", restarts)
	}
	has := func(taint corev1.Taint) bool { return taint.Key == "example.com/new" && taint.Value == "1" }
	if taints := nodeOf(t, l, n).Spec.Taints; !slices.ContainsFunc(taints, has) {
		t.Errorf("the new Node has the taints %v", taints)
	}
}
