package kubelet

import (
	"fmt"
	"time"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/internal/desired"
)

// Credential is how kubelet proves who it is: by a bootstrap token, or by a
// client certificate that the contract carries, or by one that is on the machine.
type Credential struct {
	// Token is a bootstrap token.
	Token desired.Secret
	// Cert and Key are PEM. They count where there is no token.
	Cert []byte
	Key  desired.Secret
	// Timeout bounds obtaining a certificate with the token.
	Timeout time.Duration
	// After is what must hold before the token is used.
	After []desired.ID
}

// credential is the kubeconfig and what stands behind it.
func credential(s Settings) ([]desired.Resource, error) {
	if s.Cluster.Credential.Token == "" && len(s.Cluster.Credential.Cert) > 0 {
		return givenCertificate(s)
	}
	return requestedCertificate(s)
}

// requestedCertificate: berth asks for the certificate with the token before
// kubelet starts, which spares kubelet the race between its first connection and
// its certificate. The bootstrap kubeconfig is there only until that is done.
func requestedCertificate(s Settings) ([]desired.Resource, error) {
	c := s.Cluster
	want := &desired.ClientCertificate{
		Base:     desired.Base{After: c.Credential.After},
		NodeName: s.nodeName(), Server: c.Server, CA: string(c.CA), CAFile: CAFile,
		Token: c.Credential.Token, Kubeconfig: s.kubeconfig(), CertDir: s.certDir(), Timeout: c.Credential.Timeout,
		Announce: s.announce(),
	}
	flags := []string{"--kubeconfig=" + s.kubeconfig()}
	if c.Credential.Token == "" {
		return []desired.Resource{want, dropIn("10-tlsbootstrap.conf", bootstrapFlags, flags...)}, nil
	}
	text, err := kubeconfig(c.Server, clientcmdv1.AuthInfo{Token: c.Credential.Token.Reveal()})
	if err != nil {
		return nil, err
	}
	flags = append(flags, "--bootstrap-kubeconfig="+s.bootstrap(), "--cert-dir="+s.certDir(), "--rotate-certificates=true")
	return []desired.Resource{
		want,
		&desired.File{Path: s.bootstrap(), Content: desired.SecretBytes(text), Mode: 0o600,
			Life: desired.Transient, Until: want.ID()},
		dropIn("10-tlsbootstrap.conf", bootstrapFlags, flags...),
	}, nil
}

// givenCertificate: the contract carries certificate and key.
func givenCertificate(s Settings) ([]desired.Resource, error) {
	text, err := kubeconfig(s.Cluster.Server, clientcmdv1.AuthInfo{ClientCertificate: ClientCert, ClientKey: ClientKey})
	if err != nil {
		return nil, err
	}
	c := s.Cluster.Credential
	return []desired.Resource{
		&desired.File{Path: ClientCert, Content: desired.Bytes(c.Cert), Mode: 0o600, Life: desired.Managed},
		&desired.File{Path: ClientKey, Content: desired.SecretBytes([]byte(c.Key.Reveal())), Mode: 0o600, Life: desired.Managed},
		&desired.File{Path: s.kubeconfig(), Content: desired.Bytes(text), Mode: 0o600, Life: desired.Managed},
		dropIn("10-tlsbootstrap.conf", bootstrapFlags, "--kubeconfig="+s.kubeconfig()),
	}, nil
}

// kubeconfig is the file by which kubelet finds the API server.
func kubeconfig(server string, auth clientcmdv1.AuthInfo) ([]byte, error) {
	const cluster, user, context = "localcluster", "client", "localclustercontext"
	b, err := yaml.Marshal(clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config",
		Clusters:       []clientcmdv1.NamedCluster{{Name: cluster, Cluster: clientcmdv1.Cluster{Server: server, CertificateAuthority: CAFile}}},
		AuthInfos:      []clientcmdv1.NamedAuthInfo{{Name: user, AuthInfo: auth}},
		Contexts:       []clientcmdv1.NamedContext{{Name: context, Context: clientcmdv1.Context{Cluster: cluster, AuthInfo: user}}},
		CurrentContext: context,
	})
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return b, nil
}
