package identity

import (
	"bytes"
	"path"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// Names of the pair in kubelet's certificate directory. kubelet's own store names
// pairs by time and finds the one in force by the link; berth's has one name, so
// that a run that was cut off leaves nothing that the next does not replace.
const (
	firstPair   = "kubelet-client-berth.pem"
	currentPair = "kubelet-client-current.pem"
)

// Files are the pair, the link to the current pair, and the kubeconfig that
// refers to the link, since kubelet moves the link when it renews the pair. The
// paths do not depend on the credential.
func (i *Issuer) Files(c *desired.ClientCertificate, cred converge.Credential) ([]converge.CredentialFile, error) {
	pair := path.Join(c.CertDir, firstPair)
	current := path.Join(c.CertDir, currentPair)
	config, err := kubeconfig.ForKubelet(c.Server, c.CAFile, current)
	if err != nil {
		return nil, err
	}
	content := bytes.Join([][]byte{bytes.TrimSpace(cred.Certificate), bytes.TrimSpace(cred.Key), nil}, []byte("\n"))
	return []converge.CredentialFile{
		{Path: pair, Content: desired.SecretBytes(content)},
		{Path: current, Target: pair},
		{Path: c.Kubeconfig, Content: desired.Bytes(config)},
	}, nil
}
