package desired

import (
	"errors"
	"time"
)

// TrustAnchor is a CA certificate that the machine's own bundle must contain.
type TrustAnchor struct {
	Base
	// Name becomes the file name of the certificate in the anchors directory.
	Name string `json:"name"`
	// PEM is one certificate.
	PEM string `json:"pem"`
}

// TrustAnchorID names a trust anchor.
func TrustAnchorID(name string) ID { return ID("trust:" + name) }

// ID implements Resource.
func (t *TrustAnchor) ID() ID { return TrustAnchorID(t.Name) }

// Kind implements Resource.
func (t *TrustAnchor) Kind() string { return "trust" }

// Validate implements Resource.
func (t *TrustAnchor) Validate() error {
	if !moduleName().MatchString(t.Name) || t.PEM == "" {
		return errors.New("a trust anchor needs a name in lower case and a certificate")
	}
	return nil
}

// ClientCertificate is kubelet's credential for the API server: a certificate
// and key in CertDir, and the kubeconfig that points to them. It is in place
// while the certificate is valid for NodeName and the kubeconfig names Server
// and CA. It is obtained with Token by a certificate signing request; without
// a token it must be in place already.
type ClientCertificate struct {
	Base
	NodeName string `json:"nodeName"`
	Server   string `json:"server"`
	CA       string `json:"ca"`
	CAFile   string `json:"caFile"`
	Token    Secret `json:"token,omitempty"`
	// TokenFile or TokenEnv, instead of Token, is a file or a variable of the
	// environment that holds it. It is read when a certificate is asked for.
	TokenFile string `json:"tokenFile,omitempty"`
	TokenEnv  string `json:"tokenEnv,omitempty"`
	// Azure, instead, is an identity whose token is asked for, by a way out of the
	// machine; nil is the machine's own.
	Azure      *AzureIdentity `json:"azure,omitempty"`
	Via        *Egress        `json:"via,omitempty"`
	Kubeconfig string         `json:"kubeconfig"`
	CertDir    string         `json:"certDir"`
	// Timeout bounds the request, approval and signing.
	Timeout time.Duration `json:"timeout"`
	// Announce is the Node that kubelet would register, where that is known. It is
	// created as soon as the certificate is there, so that kubelet finds it.
	Announce *Node `json:"announce,omitempty"`
}

// Node is what kubelet's registration says of a machine.
type Node struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      []Taint           `json:"taints,omitempty"`
	// Unless is a directory of configuration of others: while it holds a file,
	// what kubelet would register is not known.
	Unless string `json:"unless,omitempty"`
}

// Taint keeps pods away that do not tolerate it.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// ClientCertificateID names the credential behind a kubeconfig.
func ClientCertificateID(kubeconfig string) ID { return ID("credential:" + kubeconfig) }

// ID implements Resource.
func (c *ClientCertificate) ID() ID { return ClientCertificateID(c.Kubeconfig) }

// Kind implements Resource.
func (c *ClientCertificate) Kind() string { return "credential" }

// Holder tells two credentials for one kubeconfig apart: whose it is, and for which
// cluster.
func (c *ClientCertificate) Holder() string {
	return c.NodeName + " " + c.Server + " " + Text(c.CA).Sum()[:16]
}

// FilePaths implements Resource.
func (c *ClientCertificate) FilePaths() []string { return []string{c.Kubeconfig} }

// DirectoryPaths implements Resource.
func (c *ClientCertificate) DirectoryPaths() []string { return []string{c.CertDir} }

// Validate implements Resource.
func (c *ClientCertificate) Validate() error {
	if c.NodeName == "" || c.Server == "" || c.CA == "" || c.CertDir == "" || c.CAFile == "" {
		return errors.New("a client certificate needs node name, server, CA, CA file and directory")
	}
	if c.Azure != nil {
		if err := c.Azure.Validate(); err != nil {
			return err
		}
	}
	return cleanAbs(c.Kubeconfig)
}

// ServingCertificate is a self-signed ECDSA key pair, made once and kept while
// it is valid for the names and not about to expire.
type ServingCertificate struct {
	Base
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// Names are DNS names and IP addresses.
	Names []string `json:"names"`
}

// ServingCertificateID names the key pair by its certificate file.
func ServingCertificateID(certFile string) ID { return ID("serving:" + certFile) }

// ID implements Resource.
func (s *ServingCertificate) ID() ID { return ServingCertificateID(s.CertFile) }

// Kind implements Resource.
func (s *ServingCertificate) Kind() string { return "serving" }

// FilePaths implements Resource.
func (s *ServingCertificate) FilePaths() []string { return []string{s.CertFile, s.KeyFile} }

// Validate implements Resource.
func (s *ServingCertificate) Validate() error {
	if len(s.Names) == 0 {
		return errors.New("a serving certificate needs a name")
	}
	return errors.Join(cleanAbs(s.CertFile), cleanAbs(s.KeyFile))
}
