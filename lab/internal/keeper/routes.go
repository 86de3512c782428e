package keeper

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/berth-dev/berth/lab/internal/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// routePods keeps one route per node: its pod network, through its address.
func (s Spec) routePods(ctx context.Context) {
	known := map[string]string{}
	for {
		if err := s.watchNodes(ctx, known); err != nil && os.Getenv("BERTH_LAB_DEBUG") != "" {
			fmt.Fprintln(os.Stderr, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

func (s Spec) watchNodes(ctx context.Context, known map[string]string) error {
	config, err := kube.Config(s.Kubeconfig, s.Namespace)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	w, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if node, ok := e.Object.(*corev1.Node); ok {
			s.route(ctx, node, known)
		}
	}
	return nil
}

func (s Spec) route(ctx context.Context, node *corev1.Node, known map[string]string) {
	via := InternalIP(node)
	cidr := node.Spec.PodCIDR
	if cidr == "" || via == "" || known[cidr] == via {
		return
	}
	if err := s.Namespace.IP(ctx, "route", "replace", cidr, "via", via); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	known[cidr] = via
}

// InternalIP is a node's first internal address; empty if it has none yet.
func InternalIP(node *corev1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}
