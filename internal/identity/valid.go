package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// margin is the life that a certificate must have left: what kubelet needs to
// start and renew it.
const margin = 2 * time.Minute

// Valid says whether the credential on the machine serves: the kubeconfig names
// the server and a CA of the same authority, and its certificate is the node's,
// fits its key and is valid for two minutes more. If not, the reason says why.
// The error is for a machine that could not be read.
//
// The CA file itself is another resource's matter: edited or removed, it is
// repaired there and costs no new certificate. Only one that holds another
// authority's certificate means that the node belonged to another cluster.
func (i *Issuer) Valid(h host.Host, c *desired.ClientCertificate) (bool, string, error) {
	reason, err := problem(h, c, i.h.Now())
	return reason == "" && err == nil, reason, err
}

func problem(h host.FS, c *desired.ClientCertificate, now time.Time) (string, error) {
	k, err := kubeconfig.Read(h, c.Kubeconfig)
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EFBIG):
		return err.Error(), nil
	case errors.As(err, &at):
		return "", err
	case err != nil:
		return err.Error(), nil
	}
	if !SameServer(k.Server, c.Server) {
		return fmt.Sprintf("kubeconfig names server %s, want %s", k.Server, c.Server), nil
	}
	if reason := authorityProblem(k, c); reason != "" {
		return reason, nil
	}
	return pairProblem(k.Certificate, k.Key, nodeSubject(c.NodeName), now, margin), nil
}

func authorityProblem(k *kubeconfig.Config, c *desired.ClientCertificate) string {
	have, want := parseCertificates(k.CA), parseCertificates([]byte(c.CA))
	switch {
	case k.CAFile != "" && k.CAFile != c.CAFile:
		return fmt.Sprintf("kubeconfig names CA %s, want %s", k.CAFile, c.CAFile)
	case k.CAFile == "" && len(have) == 0:
		return "kubeconfig names no CA"
	case len(have) > 0 && !overlap(have, want):
		return fmt.Sprintf("kubeconfig's CA is another cluster's: %s", have[0].Subject)
	}
	return ""
}

// SameServer compares two URLs of an API server.
func SameServer(a, b string) bool { return normal(a) == normal(b) }

func normal(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return strings.ToLower(u.Scheme+"://"+u.Hostname()) + ":" + port + strings.TrimSuffix(u.Path, "/")
}
