// Package kubeconfig reads a kubeconfig as a node has it, with the files that it
// refers to, and writes the one that kubelet writes for itself.
package kubeconfig

import (
	"errors"
	"fmt"
	"path"

	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-dev/berth/internal/desired"
)

// Config is the current context of a kubeconfig.
type Config struct {
	Server string
	// CA is PEM. CAFile says where it came from; empty if it stood in the
	// kubeconfig itself.
	CA     []byte
	CAFile string
	// Certificate and Key are PEM, CertificateFile and KeyFile where they came
	// from.
	Certificate, Key         []byte
	CertificateFile, KeyFile string
	Token                    desired.Secret
	TokenFile                string
	// User is the name under which the credential stands. Plugin is the program that
	// prints tokens; nil for none.
	User   string
	Plugin *api.ExecConfig
}

// Parse reads the text of a kubeconfig: paths are resolved against dir and not
// yet followed.
func Parse(text []byte, dir string) (*Config, error) {
	raw, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("parse kubeconfig: %w", err)
	}
	at := raw.Contexts[raw.CurrentContext]
	if at == nil {
		return nil, fmt.Errorf("kubeconfig has no context %q", raw.CurrentContext)
	}
	cluster, user := raw.Clusters[at.Cluster], raw.AuthInfos[at.AuthInfo]
	if cluster == nil {
		return nil, fmt.Errorf("kubeconfig has no cluster %q", at.Cluster)
	}
	if user == nil {
		return nil, fmt.Errorf("kubeconfig has no user %q", at.AuthInfo)
	}
	if cluster.Server == "" {
		return nil, errors.New("kubeconfig names no server")
	}
	out := assemble(cluster, user, dir)
	out.User = at.AuthInfo
	return out, nil
}

func assemble(cluster *api.Cluster, user *api.AuthInfo, dir string) *Config {
	c := &Config{
		Server:      cluster.Server,
		CA:          cluster.CertificateAuthorityData,
		Certificate: user.ClientCertificateData,
		Key:         user.ClientKeyData,
		Token:       desired.Secret(user.Token),
		Plugin:      user.Exec,
	}
	// Text in the kubeconfig itself wins over a path, as in client-go.
	if len(c.CA) == 0 {
		c.CAFile = absolute(cluster.CertificateAuthority, dir)
	}
	if len(c.Certificate) == 0 {
		c.CertificateFile = absolute(user.ClientCertificate, dir)
	}
	if len(c.Key) == 0 {
		c.KeyFile = absolute(user.ClientKey, dir)
	}
	if c.Token == "" {
		c.TokenFile = absolute(user.TokenFile, dir)
	}
	return c
}

func absolute(p, dir string) string {
	if p == "" || path.IsAbs(p) {
		return p
	}
	return path.Join(dir, p)
}

// ForKubelet is the kubeconfig that kubelet writes after its bootstrap, with the
// same names: certificate and key are both in pair.
func ForKubelet(server, caFile, pair string) ([]byte, error) {
	const name = "default"
	text, err := clientcmd.Write(api.Config{
		Clusters:       map[string]*api.Cluster{name + "-cluster": {Server: server, CertificateAuthority: caFile}},
		AuthInfos:      map[string]*api.AuthInfo{name + "-auth": {ClientCertificate: pair, ClientKey: pair}},
		Contexts:       map[string]*api.Context{name + "-context": {Cluster: name + "-cluster", AuthInfo: name + "-auth", Namespace: "default"}},
		CurrentContext: name + "-context",
	})
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return text, nil
}
