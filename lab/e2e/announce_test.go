package e2e

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// registration is what a Node says of itself besides its status.
type registration struct {
	Labels, Annotations map[string]string
	Taints              []corev1.Taint
	Spec                corev1.NodeSpec
}

func registrationOf(n *corev1.Node) registration {
	r := registration{Labels: n.Labels, Annotations: maps.Clone(n.Annotations), Spec: n.Spec}
	for _, t := range n.Spec.Taints {
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") { // conditions, put and removed by controllers
			continue
		}
		t.TimeAdded = nil
		r.Taints = append(r.Taints, t)
	}
	delete(r.Annotations, "node.alpha.kubernetes.io/ttl")
	r.Spec.Taints, r.Spec.PodCIDR, r.Spec.PodCIDRs = nil, "", nil
	return r
}

// TestAnnouncedNodeIsKubelets proves that the Node which berth creates ahead of
// kubelet is the one that kubelet registers by itself: the Node is deleted and
// kubelet, restarted, makes it again.
func TestAnnouncedNodeIsKubelets(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	cfg := nodeConfig(t, l, func(c *aksnodeconfigv1.Configuration) {
		c.KubeletConfig.KubeletFlags["--register-with-taints"] = "example.com/a=b:NoSchedule,example.com/c:PreferNoSchedule"
		c.KubeletConfig.KubeletFlags["--cloud-provider"] = "external"
	})
	n := addNode(t, l, lab.NodeConfig{Name: "announced", UserData: customData(t, cfg)})
	ahead, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name)
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 90*time.Second)
	started, err := n.Output(ctx, "systemctl", "show", "kubelet", "--value", "-p", "ExecMainStartTimestamp", "--timestamp=unix")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Node created %s, kubelet started %s", ahead.CreationTimestamp.Time, started)
	if err := n.Run(ctx, "systemctl", "stop", "kubelet"); err != nil {
		t.Fatal(err)
	}
	if err := l.Client().CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := n.Run(ctx, "systemctl", "start", "kubelet"); err != nil {
		t.Fatal(err)
	}
	own, err := l.WaitNode(ctx, n.Name, func(x *corev1.Node) bool { return x.UID != ahead.UID && ready(x) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(registrationOf(own), registrationOf(ahead)); diff != "" {
		t.Fatalf("kubelet registers otherwise (-) than berth (+):\n%s", diff)
	}
}
