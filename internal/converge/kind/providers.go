package kind

import (
	"context"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Providers do for kinds what is no matter of this machine alone; a nil one makes the
// resources that need it fail, but for UnitAhead.
type Providers struct {
	Fetcher Fetcher
	Issuer  Issuer
	Prober  Prober
	Images  Images
	Nodes   Nodes
	// SelfSigned makes a serving key pair; ServingValid says whether one serves.
	SelfSigned   func(names []string, now time.Time) (certPEM, keyPEM []byte, err error)
	ServingValid func(certPEM, keyPEM []byte, names []string, now time.Time) (ok bool, reason string)
	// UnitAhead is what systemd said of a unit a moment ago, for one plan; ok is false where
	// nobody asked.
	UnitAhead func(ctx context.Context, name string) (st host.UnitStatus, ok bool)
}

// Fetcher brings the files of an artifact onto the machine without making them
// visible.
type Fetcher interface {
	// Stage downloads, verifies and unpacks an artifact: each of its files is
	// durable under host.TempName of its path, with its mode, when Stage returns.
	// On an error none is left. Parents of the paths exist.
	Stage(ctx context.Context, h host.Host, a *desired.Artifact) (Staged, error)
	// Version says of which version a program is ("1.36.3", without v), or ""
	// where it can't be known.
	Version(ctx context.Context, h host.Host, path string) (string, error)
}

// Has is what else a Fetcher can do: say that it has an artifact on the
// machine (a bundle).
type Has interface {
	Has(h host.FS, a *desired.Artifact) bool
}

// Staged is what a Fetcher did.
type Staged struct {
	URL    string
	SHA256 string
	Bytes  int64
	// Unverified: no digest was known for it (docs/artifacts.md).
	Unverified bool
	// Cached: nothing was fetched.
	Cached bool
	// Resumed counts how often a broken download was continued.
	Resumed int
}

// Images are the container images of the machine's runtime.
type Images interface {
	// Lacks says why a pod that names the image would need a pull; "" if it would
	// not. A runtime that does not run lacks it. It does not wait.
	Lacks(ctx context.Context, i *desired.Image) (reason string, err error)
	// Import makes the image available, and pins it where it is to be; it waits for a
	// runtime that is starting. Staged is of what was fetched; zero if nothing was.
	Import(ctx context.Context, i *desired.Image) (Staged, error)
}

// Issuer obtains and checks the node's client certificate.
type Issuer interface {
	// Issue sends a certificate signing request and waits for the certificate. It
	// refuses a name whose Node another machine keeps alive.
	Issue(ctx context.Context, c *desired.ClientCertificate) (Credential, error)
	// Lacks says what nobody has brought that Issue begins with: a bootstrap token, or the
	// secret or certificate of an identity. It asks no server.
	Lacks(c *desired.ClientCertificate) error
	// Announce creates the Node that c describes, with a new credential. It is a
	// best effort for kubelet, which registers itself where it fails. created is false
	// where there is a Node already, or where none is to be created.
	Announce(ctx context.Context, c *desired.ClientCertificate, cred Credential) (created bool, err error)
	// Valid says whether the credential on the machine serves; if not, why.
	Valid(h host.Host, c *desired.ClientCertificate) (ok bool, reason string, err error)
	// InForce is the credential on the machine.
	InForce(h host.Host, c *desired.ClientCertificate) (Credential, error)
	// Serves says whether a credential of c that was kept would be valid now.
	Serves(c *desired.ClientCertificate, cred Credential) bool
	// Files are what a new credential puts on the machine, in the order in which
	// they must appear: certificate, link to the current one, kubeconfig.
	Files(c *desired.ClientCertificate, cred Credential) ([]CredentialFile, error)
}

// CredentialFile is a file of a credential that root alone reads, or with a target a link.
type CredentialFile struct {
	Path    string
	Content desired.Content
	Target  string
}

// Credential is a certificate and its key, both PEM.
type Credential struct {
	Certificate []byte
	Key         []byte
}

// Nodes are the Node objects of clusters, each seen by its own node.
type Nodes interface {
	// Open takes the credential of a kubeconfig for the calls of one node. It sends
	// nothing. The error matches fs.ErrNotExist where the machine has none.
	Open(kubeconfig, node string) (NodeSession, error)
}

// NodeSession are the calls of one node. It keeps its credential, also when the
// kubeconfig goes.
type NodeSession interface {
	// Get reads the Node; nil if there is none.
	Get(ctx context.Context) (*NodeState, error)
	// Label sets labels of the Node with this uid, nil removes one, and returns the
	// Node as the API server has it then.
	Label(ctx context.Context, uid string, labels map[string]*string) (*NodeState, error)
	// Await waits until there is a Node, or until ctx ends.
	Await(ctx context.Context) (*NodeState, error)
}

// NodeState is what a Node says of its machine.
type NodeState struct {
	UID    string
	Labels map[string]string
	Taints []desired.Taint
	// PodCIDRs are the addresses that the cluster gave the node for pods.
	PodCIDRs []string
}

// Prober verifies a check. Its errors say what failed: name, connection, trust.
type Prober interface {
	Probe(ctx context.Context, c *desired.Check) error
}
