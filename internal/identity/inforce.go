package identity

import (
	"encoding/pem"
	"errors"
	"strings"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// InForce is the credential that the kubeconfig on the machine leads to. kubelet keeps
// both parts in one file: they are told apart.
func (i *Issuer) InForce(h host.Host, c *desired.ClientCertificate) (converge.Credential, error) {
	k, err := kubeconfig.Read(h, c.Kubeconfig)
	if err != nil {
		return converge.Credential{}, err
	}
	cred := converge.Credential{
		Certificate: blocks(k.Certificate, func(kind string) bool { return kind == certificateBlock }),
		Key:         blocks(k.Key, func(kind string) bool { return strings.HasSuffix(kind, "PRIVATE KEY") }),
	}
	if len(cred.Certificate) == 0 || len(cred.Key) == 0 {
		return converge.Credential{}, errors.New("read kubeconfig: it leads to no certificate with its key")
	}
	return cred, nil
}

// blocks are the parts of a PEM text that are of a kind.
func blocks(text []byte, of func(kind string) bool) []byte {
	var out []byte
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return out
		}
		if of(block.Type) {
			out = append(out, pem.EncodeToMemory(block)...)
		}
	}
}

// Serves says whether a credential is the node's, fits its key and is valid for two
// minutes more.
func (i *Issuer) Serves(c *desired.ClientCertificate, cred converge.Credential) bool {
	return pairProblem(cred.Certificate, cred.Key, nodeSubject(c.NodeName), i.h.Now(), margin) == ""
}
