package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/lab/internal/controlplane"
	"sigs.k8s.io/yaml"
)

// EnableKubeadm makes what `kubeadm join` looks for in a cluster: cluster-info
// signed with the lab's token, and the configurations of kubeadm, kubelet and
// kube-proxy. The kubelet's configuration fits nspawn nodes.
func (l *Lab) EnableKubeadm(ctx context.Context) error {
	config := filepath.Join(l.plane.Dir, "kubeadm.yaml")
	b, err := l.kubeadmConfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, b, 0o600); err != nil {
		return fmt.Errorf("write kubeadm configuration: %w", err)
	}
	if err := l.DeleteToken(ctx, Token); err != nil { // kubeadm wants to make it
		return err
	}
	for _, phase := range [][]string{
		{"bootstrap-token"}, {"upload-config", "kubeadm"}, {"upload-config", "kubelet"}, {"addon", "kube-proxy"},
	} {
		args := append(append([]string{"init", "phase"}, phase...), "--config", config, "--kubeconfig", l.Kubeconfig())
		out, err := l.Command(ctx, filepath.Join(l.Programs(), "kubeadm"), args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("kubeadm %v: %w: %s", phase, err, out)
		}
	}
	// Only the ConfigMap and the role are wanted: there is no image to run.
	if r, err := l.Kubectl(ctx, "-n", "kube-system", "delete", "daemonset", "kube-proxy"); err != nil || r.Code != 0 {
		return fmt.Errorf("delete kube-proxy: %w: %s", err, r.Stderr)
	}
	return nil
}

// KubeadmJoin is the command line of `kubeadm join` for a node of this lab.
func (l *Lab) KubeadmJoin() ([]string, error) {
	hash, err := l.plane.CAHash()
	if err != nil {
		return nil, err
	}
	return []string{"kubeadm", "join", l.Gateway().String() + ":443", "--token", Token,
		"--discovery-token-ca-cert-hash", hash, "--ignore-preflight-errors=all"}, nil
}

func (l *Lab) kubeadmConfig() ([]byte, error) {
	docs := []map[string]any{
		{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
			"localAPIEndpoint": map[string]any{"advertiseAddress": l.Gateway().String()},
			"bootstrapTokens":  []any{map[string]any{"token": Token, "ttl": "0s", "groups": []string{"system:bootstrappers:kubeadm:default-node-token"}, "usages": []string{"signing", "authentication"}}}},
		{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
			"kubernetesVersion":    l.plane.Version(),
			"controlPlaneEndpoint": l.Gateway().String() + ":443",
			"certificatesDir":      "/etc/kubernetes/pki", // becomes the kubelet's clientCAFile
			"networking":           map[string]any{"serviceSubnet": controlplane.ServiceCIDR, "podSubnet": controlplane.PodCIDR}},
		{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
			"cgroupDriver": "systemd", "failCgroupV1": false, "failSwapOn": false, "maxOpenFiles": 20000, "oomScoreAdj": 0,
			"evictionHard": map[string]string{"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"}},
	}
	var all []byte
	for _, d := range docs {
		b, err := yaml.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("encode kubeadm configuration: %w", err)
		}
		all = append(append(all, "---\n"...), b...)
	}
	return all, nil
}
