package e2e

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// TestJoinedPods: on a machine that has joined, pods find the API server by its name, and
// the node may do no more than its pods need.
func TestJoinedPods(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	reg := serveImages(t, l)
	files := tokenAndCA(t, l)
	maps.Copy(files, reg.trust())
	n := machineOf(t, l, "join-pods", lab.Prebaked, nodeConfig(t, l), files)
	text := ownDocument(t, l, func(c *v1alpha1.NodeConfig) {
		c.Networking.ClusterDNS, c.Networking.ClusterDomain = []string{n.IP.String()}, "cluster.local"
	})
	check(t, n.WriteFile(configPath, text, 0o600))
	if r, said := joinCommand(t, n); r.ExitCode != 0 || r.Milestone != "ready" {
		t.Fatalf("%+v\n%s", r, said)
	}
	t.Run("DNS", func(t *testing.T) { resolvesTheCluster(t, l, reg, n) })
	t.Run("rights", func(t *testing.T) { mayNoMore(t, l, n) })
}

// resolvesTheCluster: a pod on the pods' network asks the cluster's name server, which runs
// as a pod of the node, for the Service of the API server by its short name.
func resolvesTheCluster(t *testing.T, l *lab.Lab, reg *images, n *lab.Node) {
	program, err := l.CoreDNS(within(t, 4*time.Minute))
	check(t, err)
	_, err = reg.Push(within(t, time.Minute), "coredns:1", serve.StaticImage("coredns", program))
	check(t, err)
	service, err := l.Client().CoreV1().Services("default").Get(within(t, 10*time.Second), "kubernetes", metav1.GetOptions{})
	check(t, err)
	corefile := ".:53 {\n bind " + n.IP.String() + "\n errors\n log\n hosts {\n  " + service.Spec.ClusterIP + " kubernetes.default.svc.cluster.local\n }\n}\n"
	maps := l.Client().CoreV1().ConfigMaps("default")
	_, err = maps.Create(within(t, 10*time.Second), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "join-dns"}, Data: map[string]string{"Corefile": corefile}}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() { _ = maps.Delete(context.Background(), "join-dns", metav1.DeleteOptions{}) })
	awaitServiceAccount(t, l)
	_, err = l.Client().CoreV1().Pods("default").Create(within(t, 10*time.Second), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "join-dns"},
		Spec: corev1.PodSpec{NodeName: n.Name, HostNetwork: true, DNSPolicy: corev1.DNSDefault,
			Containers: []corev1.Container{{Name: "coredns", Image: reg.server + "/coredns:1", Args: []string{"-conf", "/config/Corefile"},
				VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}}},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "join-dns"}}}}}},
	}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() { deletePod(t, l, "join-dns") })
	waitRunning(t, l, "join-dns")

	pod := runWorkload(t, l, reg.workload, "join-asks-dns", n.Name)
	if pod.Status.PodIP == n.IP.String() {
		t.Fatal("the pod is not on the pods' network")
	}
	if out := kubectl(t, l, "exec", pod.Name, "--", "/workload", "resolve", "kubernetes.default"); strings.TrimSpace(out) != service.Spec.ClusterIP {
		t.Errorf("kubernetes.default is %q, want %s", out, service.Spec.ClusterIP)
	}
}

// mayNoMore: with its own certificate the node changes its own Node, and no other; it reads
// the Secret of a pod that it runs, and no other.
func mayNoMore(t *testing.T, l *lab.Lab, n *lab.Node) {
	admin := l.Client()
	_, err := admin.CoreV1().Nodes().Create(within(t, 10*time.Second), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "join-other"}}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		_ = admin.CoreV1().Nodes().Delete(context.Background(), "join-other", metav1.DeleteOptions{})
	})
	for _, name := range []string{"join-its-own", "join-anothers"} {
		_, err := admin.CoreV1().Secrets("default").Create(within(t, 10*time.Second), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"a": "b"}}, metav1.CreateOptions{})
		check(t, err)
		t.Cleanup(func() {
			_ = admin.CoreV1().Secrets("default").Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}
	usesSecret(t, l, n, "join-its-own")

	node := nodeClient(t, l, n)
	patch := func(name string) error {
		_, err := node.CoreV1().Nodes().Patch(within(t, 10*time.Second), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/a":"b"}}}`), metav1.PatchOptions{})
		return err
	}
	secret := func(name string) error {
		_, err := node.CoreV1().Secrets("default").Get(within(t, 10*time.Second), name, metav1.GetOptions{})
		return err
	}
	list := func() error {
		_, err := node.CoreV1().Secrets("default").List(within(t, 10*time.Second), metav1.ListOptions{})
		return err
	}
	for _, tc := range []struct {
		what string
		err  error
		may  bool
	}{
		{"patch its own Node", patch(n.Name), true}, {"patch another Node", patch("join-other"), false},
		{"read the Secret of its pod", secret("join-its-own"), true}, {"read another Secret", secret("join-anothers"), false},
		{"list Secrets", list(), false},
		{"delete its own Node", node.CoreV1().Nodes().Delete(within(t, 10*time.Second), n.Name, metav1.DeleteOptions{}), false},
	} {
		if tc.may && tc.err != nil || !tc.may && !apierrors.IsForbidden(tc.err) {
			t.Errorf("%s: %v", tc.what, tc.err)
		}
	}
}

// usesSecret has a pod of a node need a Secret: from then on the node may read it.
func usesSecret(t *testing.T, l *lab.Lab, n *lab.Node, name string) {
	t.Helper()
	awaitServiceAccount(t, l)
	_, err := l.Client().CoreV1().Pods("default").Create(within(t, 10*time.Second), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{NodeName: n.Name,
			Containers: []corev1.Container{{Name: "pause", Image: lab.PauseImage, VolumeMounts: []corev1.VolumeMount{{Name: "secret", MountPath: "/secret"}}}},
			Volumes:    []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}}},
	}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() { deletePod(t, l, name) })
	waitRunning(t, l, name)
}

// nodeClient asks the API server with the certificate of a node's kubelet.
func nodeClient(t *testing.T, l *lab.Lab, n *lab.Node) kubernetes.Interface {
	t.Helper()
	config := rest.AnonymousClientConfig(l.RESTConfig())
	pair := []byte(read(t, n, "/var/lib/kubelet/pki/kubelet-client-current.pem"))
	config.CertData, config.KeyData = pair, pair
	client, err := kubernetes.NewForConfig(config)
	check(t, err)
	return client
}
