package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/lab/internal/cgroup"
	"github.com/berth-dev/berth/lab/internal/image"
	"github.com/berth-dev/berth/lab/internal/machine"
	"github.com/berth-dev/berth/lab/internal/proc"
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
	// Name is the host name that cloud-init sets.
	Name string
	// Flavour is Prebaked if empty.
	Flavour Flavour
	// UserData is what the cloud hands to cloud-init: the decoded CustomData.
	UserData []byte
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
	return n, n.create(c)
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
	rec = state.Node{Machine: hex.EncodeToString(sum[:6]), Dir: filepath.Join(state.DataDir, l.Name, "nodes", c.Name),
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

// freeAddress is the first address from the tenth on that no node has.
func freeAddress(subnet netip.Prefix, s *state.State) netip.Addr {
	used := map[string]bool{}
	for _, n := range s.Nodes {
		used[n.IP] = true
	}
	for _, v := range s.VMs {
		used[v.IP] = true
	}
	a := subnet.Masked().Addr()
	for range 10 {
		a = a.Next()
	}
	for used[a.String()] {
		a = a.Next()
	}
	return a
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

// writeHosts tells the name server the names of the API server and the nodes.
// The caller holds the state's lock.
func (l *Lab) writeHosts(s *state.State) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", l.Gateway(), APIServerName)
	for name, n := range s.Nodes {
		fmt.Fprintf(&b, "%s %s %s.lab.test\n", n.IP, name, name)
	}
	for name, v := range s.VMs {
		fmt.Fprintf(&b, "%s %s %s.lab.test\n", v.IP, name, name)
	}
	for name, ip := range s.Names {
		fmt.Fprintf(&b, "%s %s\n", ip, name)
	}
	if err := os.MkdirAll(filepath.Dir(l.hostsFile()), 0o755); err != nil {
		return fmt.Errorf("create lab directory: %w", err)
	}
	tmp := l.hostsFile() + ".new"
	if err := os.WriteFile(tmp, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write lab's hosts: %w", err)
	}
	return os.Rename(tmp, l.hostsFile())
}

// Start boots a node that does not run.
func (n *Node) Start(ctx context.Context) error {
	if err := n.spec.Mount(n.rec.Lowers); err != nil {
		return err
	}
	return n.spec.Start(ctx)
}

// Stop powers the node off as its operator would.
func (n *Node) Stop(ctx context.Context) error { return n.spec.Stop(ctx) }

// Crash takes the node's power. What its programs wrote is on the disk, since
// the host's kernel lives on.
func (n *Node) Crash(ctx context.Context) error { return n.spec.Crash(ctx) }

// Running reports whether the node's PID 1 runs.
func (n *Node) Running() bool {
	_, err := n.spec.Leader()
	return err == nil
}

// Boots counts the boots since the last Start: it is 2 after one reboot.
func (n *Node) Boots() (int, error) {
	r, err := n.spec.State()
	return r.Boots, err
}

// Reboot reboots the node from inside and returns when the next boot's PID 1
// runs.
func (n *Node) Reboot(ctx context.Context) error {
	before, err := n.Boots()
	if err != nil {
		return err
	}
	if err := n.Run(ctx, "systemctl", "reboot"); err != nil {
		return err
	}
	return proc.Poll(ctx, "reboot of "+n.Name, func() (bool, error) {
		r, err := n.spec.State()
		if err != nil {
			return false, err
		}
		return r.Boots > before && n.Running(), nil
	})
}

// Partition cuts the node off the network, or connects it again.
func (n *Node) Partition(ctx context.Context, cut bool) error {
	state := "up"
	if cut {
		state = "down"
	}
	return n.lab.ns.IP(ctx, "link", "set", "vb-"+n.spec.Machine, state)
}

// Remove crashes the node and removes its disk. The cluster's Node object stays.
func (n *Node) Remove(ctx context.Context) error {
	if err := n.spec.Kill(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(n.rec.Dir); err != nil {
		return fmt.Errorf("remove disk of %s: %w", n.Name, err)
	}
	return state.Update(n.lab.Name, func(s *state.State) error {
		delete(s.Nodes, n.Name)
		return n.lab.writeHosts(s)
	})
}
