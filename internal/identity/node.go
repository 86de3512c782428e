package identity

import (
	"strings"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// NodeName is the node that a kubeconfig's certificate speaks for; "" if it speaks for
// none. Of one with a credential plugin, whose tokens are of no Node, it is the one that
// the kubeconfig says it is used for.
func NodeName(h host.FS, path string) (string, error) {
	k, err := kubeconfig.Read(h, path)
	if err != nil {
		return "", err
	}
	if k.Plugin != nil {
		if name, ok := strings.CutPrefix(k.User, nodeUserPrefix); ok {
			return name, nil
		}
		return "", nil
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

// SameCluster says whether two kubeconfigs are of one cluster: their CAs share a key. One
// without a CA of its own is known by its server alone.
func SameCluster(h host.FS, a, b string) (bool, error) {
	one, err := kubeconfig.Read(h, a)
	if err != nil {
		return false, err
	}
	two, err := kubeconfig.Read(h, b)
	if err != nil {
		return false, err
	}
	some, others := parseCertificates(one.CA), parseCertificates(two.CA)
	if len(some) > 0 && len(others) > 0 {
		return overlap(some, others), nil
	}
	return SameServer(one.Server, two.Server), nil
}
