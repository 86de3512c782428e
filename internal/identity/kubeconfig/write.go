package kubeconfig

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// Text is a kubeconfig of one context. Of CA and CAFile, and of the certificate and
// the token, what is empty is left out.
func (c *Config) Text() ([]byte, error) {
	const name = "default"
	text, err := clientcmd.Write(api.Config{
		Clusters: map[string]*api.Cluster{name: {Server: c.Server, CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CA}},
		AuthInfos: map[string]*api.AuthInfo{name: {
			ClientCertificate: c.CertificateFile, ClientKey: c.KeyFile,
			ClientCertificateData: c.Certificate, ClientKeyData: c.Key, Token: c.Token.Reveal(),
		}},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return text, nil
}
