package controlplane

import "path/filepath"

// Networks of the cluster.
const (
	ServiceCIDR = "10.96.0.0/16"
	PodCIDR     = "10.244.0.0/16"
)

const etcdURL = "http://127.0.0.1:23790"

func (p *Plane) etcdArgs() []string {
	const peer = "http://127.0.0.1:23800"
	return []string{
		"--data-dir=" + filepath.Join(p.Dir, "etcd"),
		"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer, "--unsafe-no-fsync", "--log-level=warn",
	}
}

func (p *Plane) apiserverArgs() []string {
	return append([]string{
		"--etcd-servers=" + etcdURL, "--bind-address=0.0.0.0", "--secure-port=443",
		"--advertise-address=" + p.Address, "--service-cluster-ip-range=" + ServiceCIDR,
		"--tls-cert-file=" + p.file("apiserver.crt"), "--tls-private-key-file=" + p.file("apiserver.key"),
		"--client-ca-file=" + p.file("ca.crt"),
		"--kubelet-client-certificate=" + p.file("kubelet-client.crt"), "--kubelet-client-key=" + p.file("kubelet-client.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p.file("sa.crt"), "--service-account-signing-key-file=" + p.file("sa.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--authentication-config=" + p.authentication(),
		"--enable-bootstrap-token-auth=true", "--allow-privileged=true",
		// The names of nodes are not in the host's DNS.
		"--kubelet-preferred-address-types=InternalIP",
	}, p.auditArgs()...)
}

func (p *Plane) managerArgs() []string {
	k := p.Kubeconfig("kube-controller-manager")
	return []string{
		"--kubeconfig=" + k, "--authentication-kubeconfig=" + k, "--authorization-kubeconfig=" + k,
		"--root-ca-file=" + p.file("ca.crt"), "--service-account-private-key-file=" + p.file("sa.key"),
		"--cluster-signing-cert-file=" + p.file("ca.crt"), "--cluster-signing-key-file=" + p.file("ca.key"),
		"--use-service-account-credentials=true", "--controllers=*,bootstrapsigner,tokencleaner",
		"--leader-elect=false", "--allocate-node-cidrs=true", "--cluster-cidr=" + PodCIDR,
		"--bind-address=127.0.0.1",
	}
}

func (p *Plane) schedulerArgs() []string {
	k := p.Kubeconfig("kube-scheduler")
	return []string{
		"--kubeconfig=" + k, "--authentication-kubeconfig=" + k, "--authorization-kubeconfig=" + k,
		"--leader-elect=false", "--bind-address=127.0.0.1",
	}
}

// Kubeconfig is the path of a component's or the administrator's kubeconfig.
func (p *Plane) Kubeconfig(user string) string { return filepath.Join(p.Dir, user+".kubeconfig") }
