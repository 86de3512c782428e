package kubelet

import (
	"cmp"
	"fmt"
	"time"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/yamltext"
)

// Credential is how kubelet proves who it is: by a bootstrap token, or by a
// client certificate that the contract carries, or by one that is on the machine.
type Credential struct {
	// Token is a bootstrap token.
	Token desired.Secret
	// TokenFile or TokenEnv, instead, is a file or a variable of the environment that
	// holds it. It may be gone when kubelet has its certificate, so that kubelet is
	// told of none.
	TokenFile, TokenEnv string
	// Azure, instead, is an identity of Azure. Program prints its tokens for kubelet,
	// which comes by a new certificate with it where the one before has ended.
	// Direct: kubelet shows the tokens themselves, and has no certificate.
	Azure   *desired.AzureIdentity
	Program string
	Direct  bool
	// Elsewhere: another program obtains the certificate, and writes the kubeconfig.
	Elsewhere bool
	// Cert and Key are PEM. They count where there is no token.
	Cert []byte
	Key  desired.Secret
	// CertFile and KeyFile, instead, are where somebody else keeps them.
	CertFile, KeyFile string
	// Timeout bounds obtaining a certificate with the token.
	Timeout time.Duration
	// After is what must hold before the token is used.
	After []desired.ID
}

// CredentialID is the resource that a machine has when it has joined.
func (s Settings) CredentialID() desired.ID {
	if s.Cluster.carriesCertificate() || s.Cluster.Credential.Direct {
		return desired.FileID(s.kubeconfig())
	}
	return desired.ClientCertificateID(s.kubeconfig())
}

func (c *Cluster) carriesCertificate() bool {
	return c.Credential.CertFile != "" || c.Credential.Token == "" && len(c.Credential.Cert) > 0
}

// credential is the kubeconfig and what stands behind it.
func credential(s Settings) ([]desired.Resource, error) {
	switch c := s.Cluster.Credential; {
	case c.Elsewhere:
		flags := append([]string{"--kubeconfig=" + s.kubeconfig()}, s.renewal()...)
		return []desired.Resource{dropIn("10-tlsbootstrap.conf", bootstrapFlags, flags...)}, nil
	case c.Direct:
		return azureDirect(s)
	case s.Cluster.carriesCertificate():
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
		Token: c.Credential.Token, TokenFile: c.Credential.TokenFile, TokenEnv: c.Credential.TokenEnv, Azure: c.Credential.Azure, Kubeconfig: s.kubeconfig(), CertDir: s.certDir(), Timeout: c.Credential.Timeout,
		Announce: s.announce(),
	}
	flags := []string{"--kubeconfig=" + s.kubeconfig()}
	if c.Credential.TokenFile != "" || c.Credential.TokenEnv != "" {
		flags = append(flags, s.renewal()...)
	}
	if c.Credential.Azure != nil {
		return azureBootstrap(s, want, flags)
	}
	if c.Credential.Token == "" {
		return []desired.Resource{want, dropIn("10-tlsbootstrap.conf", bootstrapFlags, flags...)}, nil
	}
	text, err := kubeconfig(c.Server, clientcmdv1.AuthInfo{Token: c.Credential.Token.Reveal()})
	if err != nil {
		return nil, err
	}
	flags = append(append(flags, "--bootstrap-kubeconfig="+s.bootstrap()), s.renewal()...)
	return []desired.Resource{
		want,
		&desired.File{Path: s.bootstrap(), Content: desired.SecretBytes(text), Mode: 0o600,
			Life: desired.Transient, Until: want.ID()},
		dropIn("10-tlsbootstrap.conf", bootstrapFlags, flags...),
	}, nil
}

// renewal has kubelet renew the certificate that it was given.
func (s Settings) renewal() []string {
	return []string{"--cert-dir=" + s.certDir(), "--rotate-certificates=true"}
}

// givenCertificate: the contract carries certificate and key, or names their files.
func givenCertificate(s Settings) ([]desired.Resource, error) {
	c := s.Cluster.Credential
	text, err := kubeconfig(s.Cluster.Server, clientcmdv1.AuthInfo{
		ClientCertificate: cmp.Or(c.CertFile, ClientCert), ClientKey: cmp.Or(c.KeyFile, ClientKey)})
	if err != nil {
		return nil, err
	}
	var out []desired.Resource
	if c.CertFile == "" {
		out = append(out,
			&desired.File{Path: ClientCert, Content: desired.Bytes(c.Cert), Mode: 0o600, Life: desired.Managed},
			&desired.File{Path: ClientKey, Content: desired.SecretBytes([]byte(c.Key.Reveal())), Mode: 0o600, Life: desired.Managed})
	}
	return append(out,
		&desired.File{Path: s.kubeconfig(), Content: desired.Bytes(text), Mode: 0o600, Life: desired.Managed},
		dropIn("10-tlsbootstrap.conf", bootstrapFlags, "--kubeconfig="+s.kubeconfig())), nil
}

// kubeconfig is the file by which kubelet finds the API server.
func kubeconfig(server string, auth clientcmdv1.AuthInfo) ([]byte, error) {
	return kubeconfigOf("client", server, auth)
}

func kubeconfigOf(user, server string, auth clientcmdv1.AuthInfo) ([]byte, error) {
	const cluster, context = "localcluster", "localclustercontext"
	b, err := yamltext.Marshal(clientcmdv1.Config{
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
