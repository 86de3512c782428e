package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/lab/internal/cgroup"
	"github.com/berth-dev/berth/lab/internal/image"
	"github.com/berth-dev/berth/lab/internal/machine"
	"github.com/berth-dev/berth/lab/internal/state"
)

// Flavour says what a node's image carries besides Debian and berth.
type Flavour = image.Flavour

// The flavours.
const (
	Prebaked = image.Prebaked // containerd, runc, CNI plugins, kubelet, kubectl, kubeadm, the sandbox image
	Bare     = image.Bare     // none of these
)

// PauseImage is the sandbox image that prebaked nodes have.
const PauseImage = "registry.test/pause:1"

// NodeConfig says what node to add.
type NodeConfig struct {
	// Name is the host name.
	Name string
	// Flavour is Prebaked if empty.
	Flavour Flavour
	// UserData is what the cloud hands to cloud-init: the decoded CustomData. nil: the
	// machine is in no cloud, and cloud-init is off.
	UserData []byte
	// Ignition is applied to the disk before the first boot, on an image
	// without cloud-init. It takes the place of UserData and InstanceID.
	Ignition []byte
	// InstanceID is "i-" and the name if empty.
	InstanceID string
	// CgroupV2 boots the node with cgroup v2 only. Where the host has the
	// controllers on v1, no pod can run there.
	CgroupV2 bool
	// Files are laid into the node's disk before it boots.
	Files map[string]File
	// WithoutBerth leaves the berth layer out of the image.
	WithoutBerth bool
	// IP is chosen by the lab if it is zero.
	IP netip.Addr
}

// File is a file to lay into a node.
type File struct {
	Content []byte
	Mode    os.FileMode // 0644 if zero
}

// Node is a machine of the lab.
type Node struct {
	Name string
	IP   netip.Addr

	lab  *Lab
	spec machine.Spec
	rec  state.Node
}

// AddNode makes a node and boots it. It returns when the node's PID 1 runs;
// see WaitNodeReady, Node.WaitBooted.
func (l *Lab) AddNode(ctx context.Context, c NodeConfig) (*Node, error) {
	n, err := l.CreateNode(ctx, c)
	if err != nil {
		return nil, err
	}
	return n, n.Start(ctx)
}

// CreateNode makes a node's disk but does not boot it.
func (l *Lab) CreateNode(ctx context.Context, c NodeConfig) (*Node, error) {
	if !validName.MatchString(c.Name) {
		return nil, fmt.Errorf("create node: bad name %q", c.Name)
	}
	if c.Flavour == "" {
		c.Flavour = Prebaked
	}
	lowers, err := l.nodeLowers(ctx, c)
	if err != nil {
		return nil, err
	}
	rec, err := l.register(c, lowers)
	if err != nil {
		return nil, err
	}
	n, err := l.node(c.Name, rec)
	if err != nil {
		return nil, err
	}
	if err := n.create(c); err != nil || c.Ignition == nil {
		return n, err
	}
	return n, n.ignite(ctx, c.Ignition)
}

func (l *Lab) nodeLowers(ctx context.Context, c NodeConfig) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lowers, ok := l.lowers[c.Flavour]
	if !ok {
		var err error
		if lowers, err = image.Lowers(ctx, l.cache, c.Flavour, l.programs); err != nil {
			return nil, err
		}
		l.lowers[c.Flavour] = lowers
	}
	if l.berth == "" || c.WithoutBerth {
		return lowers, nil
	}
	return append([]string{l.berth}, lowers...), nil
}

// register writes the node into the lab's state before anything is made.
func (l *Lab) register(c NodeConfig, lowers []string) (rec state.Node, err error) {
	sum := sha256.Sum256([]byte(l.Name + "/" + c.Name))
	rec = state.Node{Machine: hex.EncodeToString(sum[:6]), Dir: filepath.Join(l.nodesDir(), c.Name),
		Lowers: lowers, CgroupV2: c.CgroupV2}
	if rec.Cgroups, err = cgroup.Plan("berth-lab-" + rec.Machine); err != nil {
		return rec, err
	}
	return rec, state.Update(l.Name, func(s *state.State) error {
		if _, ok := s.Nodes[c.Name]; ok {
			return fmt.Errorf("create node %s: there is one", c.Name)
		}
		ip := c.IP
		if !ip.IsValid() {
			ip = freeAddress(l.subnet, s)
		}
		rec.IP = ip.String()
		s.Nodes[c.Name] = rec
		return l.writeHosts(s)
	})
}

func (l *Lab) node(name string, rec state.Node) (*Node, error) {
	ip, err := netip.ParseAddr(rec.IP)
	if err != nil {
		return nil, fmt.Errorf("read address of %s: %w", name, err)
	}
	return &Node{Name: name, IP: ip, lab: l, rec: rec, spec: machine.Spec{
		Namespace: l.ns, Machine: rec.Machine, Dir: rec.Dir, Cgroups: rec.Cgroups, CgroupV2: rec.CgroupV2}}, nil
}

// Node returns a node by its name.
func (l *Lab) Node(name string) (*Node, error) {
	s, err := state.Load(l.Name)
	if err != nil {
		return nil, err
	}
	rec, ok := s.Nodes[name]
	if !ok {
		return nil, fmt.Errorf("lab %s has no node %s", l.Name, name)
	}
	return l.node(name, rec)
}

// Nodes returns all nodes, by name.
func (l *Lab) Nodes() (map[string]*Node, error) {
	s, err := state.Load(l.Name)
	if err != nil {
		return nil, err
	}
	nodes := map[string]*Node{}
	for name, rec := range s.Nodes {
		if nodes[name], err = l.node(name, rec); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}
