package setup

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/lab"
)

// RunPod runs the sandbox image as a pod of a node until the test ends, and
// returns when it runs.
func RunPod(t *testing.T, l *lab.Lab, name, node string) {
	t.Helper()
	t.Cleanup(func() {
		_ = l.Client().CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	})
	StartPod(t, l, name, node)
}

// StartPod is RunPod, but the pod stays.
func StartPod(t *testing.T, l *lab.Lab, name, node string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "p", Image: lab.PauseImage, ImagePullPolicy: corev1.PullNever}}},
	}
	AwaitServiceAccount(t, l)
	if _, err := l.Client().CoreV1().Pods("default").Create(Within(t, 10*time.Second), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	WaitRunning(t, l, name)
}

// AwaitServiceAccount waits for the account that every pod has by default: a
// controller makes it.
func AwaitServiceAccount(t *testing.T, l *lab.Lab) {
	t.Helper()
	ctx := Within(t, 20*time.Second)
	w, err := l.Client().CoreV1().ServiceAccounts("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=default"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range w.ResultChan() {
		return
	}
	t.Fatal("no default service account:", context.Cause(ctx))
}

// WaitRunning waits until a pod runs and has an address.
func WaitRunning(t *testing.T, l *lab.Lab, pod string) {
	t.Helper()
	w, err := l.Client().CoreV1().Pods("default").Watch(Within(t, 60*time.Second), metav1.ListOptions{FieldSelector: "metadata.name=" + pod})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if p, ok := e.Object.(*corev1.Pod); ok && p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" {
			return
		}
	}
	t.Fatalf("pod %s does not run", pod)
}
