package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
)

// TestJoinUpgrades: another version in the document is an upgrade, whose pods stay; one that
// breaks is taken back; and a step back to the minor before wants the node drained.
func TestJoinUpgrades(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	progs := servePrograms(t, l)
	earlier, url, err := progs.KubeletBefore(within(t, 15*time.Minute), l, t.TempDir())
	check(t, err)
	reg := serveImages(t, l)
	files := tokenAndCA(t, l)
	maps.Copy(files, reg.trust())
	n := machineOf(t, l, "join-upgrades", lab.Prebaked, nodeConfig(t, l), files)
	versions := map[string]string{earlier: url, l.KubernetesVersion(): progs.Kubernetes}
	joins := func(version string, edit func(*v1alpha1.NodeConfig), flags ...string) (joinResult, string) {
		t.Helper()
		text := ownDocument(t, l, func(c *v1alpha1.NodeConfig) {
			c.Components.Kubernetes = v1alpha1.Kubernetes{Version: version, URLs: []string{versions[version]}}
			if edit != nil {
				edit(c)
			}
		})
		check(t, n.WriteFile(configPath, text, 0o600))
		start := time.Now()
		r, said := joinCommand(t, n, flags...)
		t.Logf("%s %v: exit code %d after %.1f s, %d changes\n%s", version, flags, r.ExitCode, time.Since(start).Seconds(), r.Changes, said)
		return r, said
	}
	stands := func(version string) {
		t.Helper()
		node := nodeOf(t, l, n)
		if is := node.Status.NodeInfo.KubeletVersion; is != "v"+version || !ready(node) || node.Spec.Unschedulable {
			t.Fatalf("kubelet %s, want v%s; ready %t, cordoned %t", is, version, ready(node), node.Spec.Unschedulable)
		}
	}

	if r, _ := joins(earlier, nil); r.ExitCode != 0 || r.Milestone != "ready" {
		t.Fatalf("join: %+v", r)
	}
	stands(earlier)
	pod := runReplica(t, l, reg.workload, "upgrades", n.Name)

	r, said := joins(l.KubernetesVersion(), func(c *v1alpha1.NodeConfig) {
		c.Node.KubeletConfig = with(t, c.Node.KubeletConfig, "topologyManagerPolicy", "no-such-policy")
	})
	if r.ExitCode != 1 || !strings.Contains(r.Failure.Cause+said, "no-such-policy") {
		t.Errorf("an upgrade that breaks: %+v\n%s", r, said)
	}
	awaitReadyAgain(t, l, n) // a join that fails does not wait for it
	stands(earlier)

	versions["1.99.0"] = "https://no-such-host.invalid/kubernetes.tar.gz"
	r, said = joins("1.99.0", nil)
	if r.ExitCode != 1 || r.Failure.Field != "components.kubernetes.version" || !strings.Contains(r.Failure.Cause, "newer than the API server") || r.Changes != 0 {
		t.Errorf("a kubelet that is newer than the API server: %+v\n%s", r, said)
	}
	stands(earlier)

	if r, _ := joins(l.KubernetesVersion(), nil); r.ExitCode != 0 || r.Milestone != "ready" {
		t.Fatalf("upgrade: %+v", r)
	}
	stands(l.KubernetesVersion())
	if now := replica(t, l, "upgrades"); now.UID != pod.UID || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the upgrade disturbed %s", pod.Name)
	}

	r, said = joins(earlier, nil)
	if r.ExitCode != 1 || r.Failure.Field != "components.kubernetes.version" || !strings.Contains(r.Failure.Hint, "--drain") || r.Changes != 0 {
		t.Errorf("a step back: %+v\n%s", r, said)
	}
	stands(l.KubernetesVersion())
	if r, _ := joins(earlier, nil, "--drain"); r.ExitCode != 0 || r.Milestone != "ready" {
		t.Fatalf("a step back of a drained node: %+v", r)
	}
	stands(earlier)
	eventually(t, "another pod of the ReplicaSet", time.Minute, func() bool {
		now := replica(t, l, "upgrades")
		return now != nil && now.UID != pod.UID && now.Status.Phase == corev1.PodRunning
	})
	if out, code := leaves(t, n, "--force", "--kubeconfig", adminPath); code != 0 || hasNode(t, l, n.Name) {
		t.Errorf("leave: exit code %d\n%s", code, out)
	}
}

// with is a JSON object with one more member.
func with(t *testing.T, object json.RawMessage, name string, value any) json.RawMessage {
	t.Helper()
	var all map[string]any
	check(t, json.Unmarshal(object, &all))
	all[name] = value
	b, err := json.Marshal(all)
	check(t, err)
	return b
}

// runReplica has a ReplicaSet run the workload on a node, and waits for its pod.
func runReplica(t *testing.T, l *lab.Lab, image, name, node string) *corev1.Pod {
	t.Helper()
	one, labels := int32(1), map[string]string{"app": name}
	awaitServiceAccount(t, l)
	sets := l.Client().AppsV1().ReplicaSets("default")
	_, err := sets.Create(within(t, 10*time.Second), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector:                  map[string]string{corev1.LabelHostname: node},
				TerminationGracePeriodSeconds: new(int64),
				Containers:                    []corev1.Container{{Name: "workload", Image: image}}}}},
	}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		kubectl(t, l, "delete", "replicaset", name, "--wait=false")
	})
	var pod *corev1.Pod
	eventually(t, fmt.Sprintf("the pod of ReplicaSet %s", name), time.Minute, func() bool {
		pod = replica(t, l, name)
		return pod != nil && pod.Status.Phase == corev1.PodRunning
	})
	return pod
}

// replica is the newest pod of a ReplicaSet that is not on its way out; nil for none.
func replica(t *testing.T, l *lab.Lab, name string) *corev1.Pod {
	t.Helper()
	pods, err := l.Client().CoreV1().Pods("default").List(within(t, 10*time.Second), metav1.ListOptions{LabelSelector: "app=" + name})
	check(t, err)
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			return &p
		}
	}
	return nil
}
