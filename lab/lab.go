// Package lab runs a real Kubernetes control plane and real nodes on one
// machine: the nodes are systemd-nspawn machines that boot Debian with
// cloud-init, on a bridge in a network namespace of the lab's own.
//
// The lab needs root on Debian 12 with Go. It installs the Debian packages
// that it misses and says which, builds Kubernetes and containerd from Go
// modules once, and keeps all that in a cache.
package lab

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/berth-dev/berth/lab/internal/build"
	"github.com/berth-dev/berth/lab/internal/cache"
	"github.com/berth-dev/berth/lab/internal/controlplane"
	"github.com/berth-dev/berth/lab/internal/hostdeps"
	"github.com/berth-dev/berth/lab/internal/image"
	"github.com/berth-dev/berth/lab/internal/netns"
	"github.com/berth-dev/berth/lab/internal/progress"
	"github.com/berth-dev/berth/lab/internal/state"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// APIServerName is the API server's DNS name inside the lab.
const APIServerName = "api.lab.test"

// PrivateAPIServerName is a name of the API server that its certificate has, too, and that
// the lab's name server does not know: that of a private link.
const PrivateAPIServerName = "api.privatelink.lab.test"

// Token is a bootstrap token that every lab has.
const Token = "abcdef.0123456789abcdef"

// Config says what lab to start. The zero value is useful.
type Config struct {
	// Name tells labs of one machine apart: letters, digits and dashes.
	// "lab" if empty.
	Name string
	// Stay lets the lab live on when this process ends. Otherwise it is
	// taken down, even after a kill.
	Stay bool
	// Log gets a line when a long step begins and ends. os.Stderr if nil.
	Log io.Writer
	// Root is berth's repository. Found from the working directory if empty.
	Root string
	// Subnet is the lab's network; its first address is the bridge's.
	// 10.99.0.0/24 if zero: labs do not see each other.
	Subnet netip.Prefix
	// WithoutBerth does not build berth: nodes are plain.
	WithoutBerth bool
	// AuditGroup is the group of users whose requests the API server logs; see
	// Lab.AuditLog. None if empty.
	AuditGroup string
}

func (c *Config) setDefaults() (err error) {
	if c.Name == "" {
		c.Name = "lab"
	}
	if c.Log == nil {
		c.Log = os.Stderr
	}
	if !c.Subnet.IsValid() {
		c.Subnet = netip.MustParsePrefix("10.99.0.0/24")
	}
	if c.Root == "" {
		c.Root, err = build.Root()
	}
	return err
}

// Lab is a running control plane and its nodes.
type Lab struct {
	Name string

	log      *progress.Log
	cache    *cache.Cache
	root     string
	subnet   netip.Prefix
	ns       netns.Namespace
	programs image.Programs
	pause    string
	berth    string // layer; empty if there is no berth to build
	plane    *controlplane.Plane
	rest     *rest.Config
	client   *kubernetes.Clientset
	keeper   io.Closer // our end of the keeper's standard input

	mu     sync.Mutex
	lowers map[Flavour][]string
}

// Gateway is the bridge's address: of the API server, the name server and
// whatever a test serves to nodes.
func (l *Lab) Gateway() netip.Addr { return l.subnet.Masked().Addr().Next() }

// APIServer is the API server's URL for nodes, by address.
func (l *Lab) APIServer() string { return l.plane.URL() }

// AnotherAPIServer is the URL of the API server that StartAnotherAPIServer starts.
func (l *Lab) AnotherAPIServer() string { return l.plane.AnotherURL() }

// StartAnotherAPIServer starts one more API server of the cluster, and returns what ends it.
func (l *Lab) StartAnotherAPIServer(ctx context.Context) (end func(context.Context) error, err error) {
	id, err := l.plane.StartAnother(ctx)
	return id.Kill, err
}

// Namespace is the name of the lab's network namespace, below /run/netns.
func (l *Lab) Namespace() string { return string(l.ns) }

// CA is the cluster's CA certificate, PEM.
func (l *Lab) CA() ([]byte, error) { return os.ReadFile(filepath.Join(l.plane.Dir, "pki", "ca.crt")) }

// Client is an administrator's client of the cluster.
func (l *Lab) Client() kubernetes.Interface { return l.client }

// RESTConfig is a copy of the administrator's client configuration. It dials
// inside the lab's namespace.
func (l *Lab) RESTConfig() *rest.Config { return rest.CopyConfig(l.rest) }

// Kubeconfig is the path of the administrator's kubeconfig. It is of use only
// to programs that run in the lab's namespace.
func (l *Lab) Kubeconfig() string { return l.plane.Kubeconfig("admin") }

// Programs is the directory of kubectl, kubeadm, kubelet and the control plane.
func (l *Lab) Programs() string { return l.programs.Kubernetes }

// RuntimePrograms is the directory of containerd, runc, ctr, crane and cni/.
func (l *Lab) RuntimePrograms() string { return l.programs.Runtime }

// PauseArchive is the path of the sandbox image as a docker archive.
func (l *Lab) PauseArchive() string { return filepath.Join(l.pause, "pause.tar") }

// prepare builds everything that can be cached.
func (l *Lab) prepare(ctx context.Context) (err error) {
	if os.Geteuid() != 0 {
		return fmt.Errorf("start lab: it must run as root")
	}
	if err := hostdeps.Nodes(ctx, l.log); err != nil {
		return err
	}
	labDir := filepath.Join(l.root, "lab")
	if l.programs.Runtime, err = build.Runtime(ctx, l.cache, labDir); err != nil {
		return err
	}
	if l.programs.Kubernetes, err = build.Kubernetes(ctx, l.cache, labDir); err != nil {
		return err
	}
	if l.pause, err = image.Pause(ctx, l.cache, labDir, l.programs.Runtime); err != nil {
		return err
	}
	_, err = image.Base(ctx, l.cache)
	return err
}

// plan fills in where everything of the lab is.
func newLab(c Config) (*Lab, error) {
	log := &progress.Log{W: c.Log}
	cache, err := cache.Open(log)
	if err != nil {
		return nil, err
	}
	l := &Lab{Name: c.Name, log: log, cache: cache, root: c.Root, subnet: c.Subnet,
		ns: netns.Namespace("berth-lab-" + c.Name), lowers: map[Flavour][]string{}}
	l.plane = &controlplane.Plane{Namespace: l.ns, Address: l.Gateway().String(), Names: []string{APIServerName, PrivateAPIServerName},
		Dir: filepath.Join(state.DataDir, c.Name, "controlplane"), Started: l.recordProcess, AuditGroup: c.AuditGroup}
	return l, nil
}
