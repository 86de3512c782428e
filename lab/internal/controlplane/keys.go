package controlplane

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/lab/internal/pki"
	"sigs.k8s.io/yaml"
)

// client is a user of the API server with a certificate.
type client struct {
	file, name string
	groups     []string
	kubeconfig bool
}

var clients = []client{
	{"admin", "admin", []string{"system:masters"}, true},
	{"kube-controller-manager", "system:kube-controller-manager", nil, true},
	{"kube-scheduler", "system:kube-scheduler", nil, true},
	{"kubelet-client", "kube-apiserver-kubelet-client", []string{"system:masters"}, false},
}

// writeKeys makes the cluster's CA and all certificates.
func (p *Plane) writeKeys() error {
	if err := os.MkdirAll(filepath.Join(p.Dir, "pki"), 0o700); err != nil {
		return fmt.Errorf("create key directory: %w", err)
	}
	ca, err := pki.NewCA("kubernetes-ca")
	if err != nil {
		return err
	}
	if err := p.writePair("ca", ca.Pair); err != nil {
		return err
	}
	if err := p.writeServerKeys(ca); err != nil {
		return err
	}
	for _, c := range clients {
		if err := p.writeClient(ca, c); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) writeServerKeys(ca *pki.CA) error {
	names := append([]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}, p.Names...)
	server, err := ca.Server("kube-apiserver", names,
		net.ParseIP("127.0.0.1"), net.ParseIP(p.Address), net.ParseIP("10.96.0.1"))
	if err != nil {
		return err
	}
	if err := p.writePair("apiserver", server); err != nil {
		return err
	}
	accounts, err := pki.SigningPair()
	if err != nil {
		return err
	}
	return p.writePair("sa", accounts)
}

func (p *Plane) writeClient(ca *pki.CA, c client) error {
	pair, err := ca.Client(c.name, c.groups...)
	if err != nil {
		return err
	}
	if err := p.writePair(c.file, pair); err != nil || !c.kubeconfig {
		return err
	}
	b, err := kubeconfig(p.URL(), ca.Cert, pair)
	if err != nil {
		return err
	}
	return write(p.Kubeconfig(c.file), b)
}

func (p *Plane) writePair(name string, pair pki.Pair) error {
	if err := write(p.file(name+".crt"), pair.Cert); err != nil {
		return err
	}
	return write(p.file(name+".key"), pair.Key)
}

func write(path string, b []byte) error {
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	return nil
}

func kubeconfig(server string, ca []byte, user pki.Pair) ([]byte, error) {
	encode := base64.StdEncoding.EncodeToString
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "lab",
		"clusters": []any{map[string]any{"name": "lab", "cluster": map[string]any{
			"server": server, "certificate-authority-data": encode(ca)}}},
		"users": []any{map[string]any{"name": "lab", "user": map[string]any{
			"client-certificate-data": encode(user.Cert), "client-key-data": encode(user.Key)}}},
		"contexts": []any{map[string]any{"name": "lab", "context": map[string]any{"cluster": "lab", "user": "lab"}}},
	})
}
