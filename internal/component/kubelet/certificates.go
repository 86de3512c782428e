package kubelet

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// Cluster is the cluster that kubelet joins.
type Cluster struct {
	// Server is the API server: https://name:443.
	Server string
	// CA is the cluster's CA bundle, PEM.
	CA []byte
	// APIServer is the API server's own certificate, PEM; it may be empty.
	APIServer []byte
	// Credential is how kubelet proves who it is.
	Credential Credential
}

// certificates are the CA files and the serving key pair.
func certificates(s Settings) ([]desired.Resource, error) {
	out := []desired.Resource{
		&desired.File{Path: CAFile, Content: desired.Bytes(s.Cluster.CA), Mode: 0o600, Life: desired.Managed},
	}
	if len(s.Cluster.APIServer) > 0 {
		out = append(out, &desired.File{
			Path: APIServerFile, Content: desired.Bytes(s.Cluster.APIServer), Mode: 0o644, Life: desired.Managed,
		})
	}
	if s.ServesClusterCertificate() {
		return out, nil
	}
	pair := s.serving()
	if pair.CertFile == pair.KeyFile { // somebody's file with both in it: kubelet takes that
		return out, nil
	}
	if err := pair.Validate(); err != nil {
		return nil, fmt.Errorf("tlsCertFile and tlsPrivateKeyFile of kubelet: %w", err)
	}
	return append(out, pair), nil
}

// serving is a key pair at the path where kubelet looks for one: making its own
// would cost it time before it registers.
func (s Settings) serving() *desired.ServingCertificate {
	cert, key := s.file("--tls-cert-file", "tlsCertFile"), s.file("--tls-private-key-file", "tlsPrivateKeyFile")
	if cert == "" || key == "" || s.KeepsNoServingFiles() {
		cert, key = s.certDir()+"/kubelet.crt", s.certDir()+"/kubelet.key"
	}
	names := []string{s.nodeName()}
	for ip := range strings.SplitSeq(s.effectiveFlags()["--node-ip"], ",") {
		if ip = strings.TrimSpace(ip); ip != "" && ip != "0.0.0.0" && ip != "::" {
			names = append(names, ip)
		}
	}
	return &desired.ServingCertificate{CertFile: cert, KeyFile: key, Names: names}
}

// NodeName is the name of the machine's Node.
func (s Settings) NodeName() string { return s.nodeName() }

// nodeName is kubelet's rule: the override or the machine's name, in lower case.
func (s Settings) nodeName() string {
	name := s.Flags["--hostname-override"]
	if name == "" {
		name = s.Hostname
	}
	return strings.ToLower(strings.TrimSpace(name))
}

func (s Settings) flagOr(flag, otherwise string) string {
	if v := s.Flags[flag]; v != "" {
		return v
	}
	return otherwise
}

func (s Settings) certDir() string    { return s.flagOr("--cert-dir", CertDir) }
func (s Settings) kubeconfig() string { return s.flagOr("--kubeconfig", Kubeconfig) }
func (s Settings) bootstrap() string  { return s.flagOr("--bootstrap-kubeconfig", Bootstrap) }
