package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/pki"
)

// joinResult is what berth join prints with -o json, as far as tests read it.
type joinResult struct {
	Node, Milestone string
	Changes         int
	ExitCode        int
	Failure         struct {
		Name, Cause, Hint, Field string
	}
}

// joinCommand runs berth join on a machine and returns its result, and what it said.
func joinCommand(t *testing.T, n *lab.Node, flags ...string) (joinResult, string) {
	t.Helper()
	return joinWith(t, n, "", flags...)
}

// joinWith is joinCommand with a variable (NAME=value) in berth's environment.
func joinWith(t *testing.T, n *lab.Node, variable string, flags ...string) (joinResult, string) {
	t.Helper()
	args := append([]string{"env", variable, berthPath, "join", "-f", configPath, "-o", "json"}, flags...)
	if variable == "" {
		args = args[2:]
	}
	r, err := n.Exec(within(t, 3*time.Minute), args...)
	if err != nil {
		t.Fatal(err)
	}
	var out joinResult
	if err := json.Unmarshal(r.Stdout, &out); err != nil || out.ExitCode != r.Code {
		t.Fatalf("exit code %d, %v:\n%s%s", r.Code, err, r.Stdout, r.Stderr)
	}
	return out, string(r.Stderr)
}

// kubeletsOwn sets the kernel's parameters that kubelet writes to what a fresh machine has:
// they are those of the lab's host, and earlier nodes have changed them. No node may run
// beside.
func kubeletsOwn(t *testing.T, n *lab.Node) {
	t.Helper()
	run(t, n, "sysctl", "-q", "-w", "vm.overcommit_memory=0", "kernel.panic=0", "kernel.panic_on_oops=0")
}

// TestJoinAndLeave: a bare machine becomes a Ready node by a bootstrap token; a second
// join does nothing, without the token; leave gives it back as it was; and it can join
// again. It runs alone, since it sets values of the kernel that all nodes share.
func TestJoinAndLeave(t *testing.T) {
	l := sharedLab(t)
	reg, progs := serveImages(t, l), servePrograms(t, l)
	files := tokenAndCA(t, l)
	maps.Copy(files, reg.trust())
	n := machineOf(t, l, "join-bare", lab.Bare, nodeConfig(t, l), files)
	text := ownDocument(t, l, fromSite(progs), func(c *v1alpha1.NodeConfig) {
		c.Components.SandboxImage = reg.pushPause(t, l)
	})
	if err := n.WriteFile(configPath, text, 0o600); err != nil {
		t.Fatal(err)
	}
	kubeletsOwn(t, n)
	before, packages := look(t, n), run(t, n, "cat", "/var/lib/dpkg/status")

	start := time.Now()
	r, said := joinCommand(t, n)
	t.Logf("join took %.2f s, %d changes:\n%s", time.Since(start).Seconds(), r.Changes, said)
	if r.ExitCode != 0 || r.Milestone != "ready" || r.Node != n.Name || !ready(nodeOf(t, l, n)) {
		t.Fatalf("%+v", r)
	}
	token := run(t, n, "cat", tokenPath)
	run(t, n, "rm", tokenPath)
	if r, said = joinCommand(t, n); r.ExitCode != 0 || r.Changes != 0 || r.Milestone != "ready" || !strings.Contains(said, "no changes") {
		t.Errorf("second join: %+v\n%s", r, said)
	}
	if out := run(t, n, berthPath, "status"); !strings.Contains(out, "join: "+n.Name+" is ready since") {
		t.Error(out)
	}
	if run(t, n, "cat", "/var/lib/dpkg/status") != packages {
		t.Error("join installed a package")
	}
	runWorkload(t, l, reg.workload, "join-pod", n.Name)
	keepsAnothersNode(t, l, n)

	start = time.Now()
	out, code := leaves(t, n, "--force", "--kubeconfig", adminPath)
	t.Logf("leave took %.2f s:\n%s", time.Since(start).Seconds(), out)
	if code != 0 || hasNode(t, l, n.Name) {
		t.Errorf("leave: exit code %d", code)
	}
	if err := n.WriteFile(tokenPath, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, look(t, n)); diff != "" {
		t.Error(diff)
	}
	start = time.Now()
	if r, said = joinCommand(t, n); r.ExitCode != 0 || r.Milestone != "ready" {
		t.Errorf("join after leave: %+v\n%s", r, said)
	}
	t.Logf("join after leave took %.2f s", time.Since(start).Seconds())
}

// keepsAnothersNode: where the Node of the machine's name is another machine's, leave ends
// before it has done anything. The machine itself stands in for that one, by another id.
func keepsAnothersNode(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	run(t, n, "sh", "-ec", "echo fedcba9876543210fedcba9876543210 >/run/another-id; mount --bind /run/another-id /etc/machine-id")
	out, code := leaves(t, n, "--force", "--kubeconfig", adminPath)
	run(t, n, "umount", "/etc/machine-id")
	if code != 1 || !strings.Contains(out, "is not this machine's: its machine id is") {
		t.Errorf("leave with another cluster's kubeconfig: exit code %d\n%s", code, out)
	}
	if node := nodeOf(t, l, n); !ready(node) || node.Spec.Unschedulable {
		t.Error("the Node was changed")
	}
	t.Log(out)
}

// TestJoinFails: what keeps a machine out of a cluster is told with a code and a remedy,
// and what was done until then can be taken back.
func TestJoinFails(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := machineOf(t, l, "join-fails", lab.Prebaked, nodeConfig(t, l), tokenAndCA(t, l))
	other, err := pki.NewCA("other")
	if err != nil {
		t.Fatal(err)
	}
	const expired = "expird.0123456789abcdef"
	check(t, l.AddToken(within(t, 10*time.Second), expired, time.Now().Add(-time.Hour)))
	before := look(t, n, "/var/lib/containerd", "/etc/berth", configPath)
	for _, tc := range []struct {
		name, token       string
		edit              func(*v1alpha1.NodeConfig)
		flags             []string
		code              int
		error, hint, said string
	}{
		{"a token that the cluster does not know", "abcdef.0000000000000000", nil, nil, 1, "ERR_CLIENT_CERTIFICATE", "bootstrap-token-abcdef", "abcdef"},
		{"a token that has expired", expired, nil, nil, 1, "ERR_CLIENT_CERTIFICATE", "it may have expired; make a new one (kubeadm token create)", "expird"},
		{"a wrong CA", lab.Token, func(c *v1alpha1.NodeConfig) { c.Cluster.CAFile = "/etc/berth/other.pem" }, nil, 1, "ERR_API_SERVER_UNTRUSTED", "CA", ""},
		{"a server that does not answer", lab.Token, func(c *v1alpha1.NodeConfig) {
			c.Cluster.Server = fmt.Sprintf("https://%s:9", l.Gateway())
		}, []string{"--timeout", "5s"}, 1, "ERR_PROVISION_TIMEOUT", "--timeout", "connection refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var edits []func(*v1alpha1.NodeConfig)
			if tc.edit != nil {
				edits = append(edits, tc.edit)
			}
			text := ownDocument(t, l, edits...)
			for path, content := range map[string][]byte{configPath: text, tokenPath: []byte(tc.token), "/etc/berth/other.pem": other.Cert} {
				if err := n.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, said := joinCommand(t, n, tc.flags...)
			if r.ExitCode != tc.code || r.Failure.Name != tc.error || r.Failure.Hint == "" || !strings.Contains(r.Failure.Hint, tc.hint) || !strings.Contains(said, tc.said) {
				t.Errorf("%+v\n%s", r, said)
			}
			t.Logf("%+v", r.Failure)
		})
	}
	if out, code := leaves(t, n, "--force"); code != 0 {
		t.Errorf("leave: exit code %d\n%s", code, out)
	}
	if diff := cmp.Diff(before, look(t, n, "/var/lib/containerd", "/etc/berth", configPath)); diff != "" {
		t.Error(diff)
	}
}

// TestJoinAsksTheCluster: name servers that the document does not name come from the
// Service kube-dns, which only a node may read, and from kubeadm's ConfigMap, once there
// is one; pods have them.
func TestJoinAsksTheCluster(t *testing.T) {
	l := sharedLab(t)
	n := machineOf(t, l, "join-asks", lab.Prebaked, nodeConfig(t, l), tokenAndCA(t, l))
	text := ownDocument(t, l, func(c *v1alpha1.NodeConfig) { c.Networking.ClusterDNS = nil })
	if err := n.WriteFile(configPath, text, 0o600); err != nil {
		t.Fatal(err)
	}
	server := dnsService(t, l)
	withoutKubeletSettings(t, l)
	r, said := joinCommand(t, n)
	t.Logf("%s", said)
	if r.ExitCode != 0 || r.Milestone != "ready" || strings.Contains(said, "networking.clusterDNS") {
		t.Fatalf("%+v\n%s", r, said)
	}
	runPod(t, l, "asks-pod", n.Name)
	resolvers := run(t, n, "sh", "-c", "find /run/containerd /var/lib/containerd -name resolv.conf -path '*sandboxes*' | xargs cat")
	if want := "nameserver " + server; !strings.Contains(resolvers, want) || !strings.Contains(resolvers, "search default.svc.cluster.local") {
		t.Errorf("pods have %s, want %s", resolvers, want)
	}
	run(t, n, "rm", tokenPath)
	if r, said := joinCommand(t, n); r.ExitCode != 0 || r.Changes != 0 {
		t.Errorf("second join: %+v\n%s", r, said)
	}

	kubeletSettings(t, l, "clusterDNS: [10.96.0.53]\nclusterDomain: told.example\n")
	if r, said := joinCommand(t, n); r.ExitCode != 0 || r.Changes == 0 || r.Milestone != "ready" {
		t.Errorf("after the cluster said something else: %+v\n%s", r, said)
	}
	config := run(t, n, "cat", "/etc/default/kubeletconfig.json")
	if !strings.Contains(config, "10.96.0.53") || !strings.Contains(config, "told.example") {
		t.Error(config)
	}
}

// dnsService makes the Service of the cluster's name server, and returns its address.
func dnsService(t *testing.T, l *lab.Lab) string {
	t.Helper()
	services := l.Client().CoreV1().Services("kube-system")
	s, err := services.Create(within(t, 10*time.Second), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-dns"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = services.Delete(context.Background(), "kube-dns", metav1.DeleteOptions{}) })
	return s.Spec.ClusterIP
}

// withoutKubeletSettings takes away what kubeadm told of kubelets, for the time of the test.
func withoutKubeletSettings(t *testing.T, l *lab.Lab) {
	t.Helper()
	maps := l.Client().CoreV1().ConfigMaps("kube-system")
	was, err := maps.Get(within(t, 10*time.Second), "kubelet-config", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	check(t, maps.Delete(within(t, 10*time.Second), was.Name, metav1.DeleteOptions{}))
	t.Cleanup(func() {
		was.ResourceVersion, was.UID = "", ""
		_, err := maps.Create(context.Background(), was, metav1.CreateOptions{})
		check(t, err)
	})
}

// kubeletSettings makes the ConfigMap in which kubeadm tells nodes what their kubelets
// are, with the rights that it gives them.
func kubeletSettings(t *testing.T, l *lab.Lab, text string) {
	t.Helper()
	const name = "kubelet-config"
	ctx, maps, rbac := within(t, 20*time.Second), l.Client().CoreV1().ConfigMaps("kube-system"), l.Client().RbacV1()
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"kubelet": text}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = maps.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	_, err = rbac.Roles("kube-system").Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}, Verbs: []string{"get"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rbac.Roles("kube-system").Delete(context.Background(), name, metav1.DeleteOptions{}) })
	_, err = rbac.RoleBindings("kube-system").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:nodes"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = rbac.RoleBindings("kube-system").Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// TestJoinKilled kills joins at random moments, and starts three at once: the next one
// ends what was begun, and one of the three does the work.
func TestJoinKilled(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := machineOf(t, l, "join-killed", lab.Prebaked, nodeConfig(t, l), tokenAndCA(t, l))
	if err := n.WriteFile(configPath, ownDocument(t, l), 0o600); err != nil {
		t.Fatal(err)
	}
	before := look(t, n, "/var/lib/containerd")
	for i := range 10 {
		moment := time.Duration(rand.IntN(1200)) * time.Millisecond
		killed, err := n.Exec(within(t, time.Minute), "timeout", "-s", "KILL", fmt.Sprintf("%.3f", moment.Seconds()+0.001), berthPath, "join", "-f", configPath)
		if err != nil {
			t.Fatal(err)
		}
		r, said := joinCommand(t, n)
		t.Logf("round %d: killed after %s (exit code %d), then %d changes, %s", i, moment, killed.Code, r.Changes, r.Milestone)
		if r.ExitCode != 0 || r.Milestone != "ready" {
			t.Errorf("killed after %s: %+v\n%s", moment, r, said)
		}
		if r, _ := joinCommand(t, n); r.ExitCode != 0 || r.Changes != 0 {
			t.Errorf("killed after %s, again: %+v", moment, r)
		}
		if out, code := leaves(t, n, "--force", "--kubeconfig", adminPath); code != 0 {
			t.Errorf("leave: exit code %d\n%s", code, out)
		}
	}
	if diff := cmp.Diff(before, look(t, n, "/var/lib/containerd")); diff != "" {
		t.Error(diff)
	}
	out := run(t, n, "sh", "-c", fmt.Sprintf("for i in 1 2 3; do %s join -f %s -o json 2>/dev/null & done; wait", berthPath, configPath))
	worked := 0
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var r joinResult
		if err := d.Decode(&r); err != nil {
			t.Fatal(err, out)
		}
		if r.ExitCode != 0 || r.Milestone != "ready" {
			t.Errorf("%+v", r)
		}
		if r.Changes > 0 {
			worked++
		}
	}
	if worked != 1 {
		t.Errorf("%d of three did the work: %s", worked, out)
	}
}
