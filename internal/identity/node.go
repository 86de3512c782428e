package identity

import (
	"strings"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// NodeName is the node that a kubeconfig's certificate speaks for; "" if it speaks for
// none.
func NodeName(h host.FS, path string) (string, error) {
	k, err := kubeconfig.Read(h, path)
	if err != nil {
		return "", err
	}
	all := parseCertificates(k.Certificate)
	if len(all) == 0 {
		return "", nil
	}
	name, _ := strings.CutPrefix(all[0].Subject.CommonName, nodeUserPrefix)
	if name == all[0].Subject.CommonName {
		return "", nil
	}
	return name, nil
}
