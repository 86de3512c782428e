package lab

import (
	"encoding/base64"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// NodeConfiguration is what a client would send for a node of this lab. What
// only nspawn nodes need (cgroup v1, few open files, no power over the OOM
// score) goes in as kubelet flags.
func (l *Lab) NodeConfiguration() (*aksnodeconfigv1.Configuration, error) {
	ca, err := l.CA()
	if err != nil {
		return nil, err
	}
	token := Token
	return &aksnodeconfigv1.Configuration{
		Version:           "v1",
		KubernetesVersion: l.KubernetesVersion(),
		KubernetesCaCert:  base64.StdEncoding.EncodeToString(ca),
		ApiServerConfig:   &aksnodeconfigv1.ApiServerConfig{ApiServerName: APIServerName},
		AuthConfig:        &aksnodeconfigv1.AuthConfig{SubscriptionId: "00000000-0000-0000-0000-000000000001", TenantId: "00000000-0000-0000-0000-000000000002"},
		ClusterConfig: &aksnodeconfigv1.ClusterConfig{
			ResourceGroup: "MC_lab", Location: "westeurope",
			ClusterNetworkConfig: &aksnodeconfigv1.ClusterNetworkConfig{VnetName: "vnet", RouteTable: "routes", Subnet: "nodes"},
		},
		BootstrappingConfig: &aksnodeconfigv1.BootstrappingConfig{TlsBootstrappingToken: &token},
		KubeBinaryConfig:    &aksnodeconfigv1.KubeBinaryConfig{PodInfraContainerImageUrl: PauseImage},
		NetworkConfig:       &aksnodeconfigv1.NetworkConfig{NetworkPlugin: aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_KUBENET},
		KubeletConfig: &aksnodeconfigv1.KubeletConfig{
			KubeletFlags:      kubeletFlags(),
			KubeletNodeLabels: map[string]string{"agentpool": "lab", "kubernetes.azure.com/cluster": "lab"},
		},
	}, nil
}

func kubeletFlags() map[string]string {
	return map[string]string{
		"--fail-cgroupv1": "false", "--max-open-files": "20000", "--oom-score-adj": "0", "--fail-swap-on": "false",
		"--cluster-dns": "10.96.0.10", "--cluster-domain": "cluster.local", "--authorization-mode": "Webhook",
		"--anonymous-auth": "false", "--authentication-token-webhook": "true", "--client-ca-file": "/etc/kubernetes/certs/ca.crt",
		"--eviction-hard": "memory.available<50Mi,nodefs.available<1%,imagefs.available<1%", "--rotate-certificates": "true",
		"--pod-manifest-path": "/etc/kubernetes/manifests", "--cgroup-driver": "systemd",
	}
}
