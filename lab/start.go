package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/berth-dev/berth/lab/internal/keeper"
	"github.com/berth-dev/berth/lab/internal/kube"
	"github.com/berth-dev/berth/lab/internal/machine"
	"github.com/berth-dev/berth/lab/internal/netns"
	"github.com/berth-dev/berth/lab/internal/placement"
	"github.com/berth-dev/berth/lab/internal/proc"
	"github.com/berth-dev/berth/lab/internal/role"
	"github.com/berth-dev/berth/lab/internal/state"
	"github.com/berth-dev/berth/lab/internal/sysctl"
	"k8s.io/client-go/kubernetes"
)

// init turns a copy of this program that the lab started in the background
// into what it was started for.
func init() {
	role.Run(map[string]role.Func{
		machine.Role: machine.Supervise,
		keeper.Role:  func(args []byte) error { return keeper.Run(args, Down) },
	})
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$`)

// Start builds what is not in the cache, removes what dead labs left and
// starts a control plane. The lab is taken down with Close, or when this
// process ends unless c.Stay.
func Start(ctx context.Context, c Config) (*Lab, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	if !validName.MatchString(c.Name) {
		return nil, fmt.Errorf("start lab: bad name %q", c.Name)
	}
	l, err := newLab(c)
	if err != nil {
		return nil, err
	}
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	if !c.WithoutBerth {
		if err := l.Rebuild(ctx); err != nil {
			return nil, err
		}
	}
	if err := l.up(ctx, c); err != nil {
		return nil, errors.Join(err, Down(context.WithoutCancel(ctx), c.Name))
	}
	return l, nil
}

// up makes the lab, once everything is built.
func (l *Lab) up(ctx context.Context, c Config) error {
	if err := Clean(ctx); err != nil {
		return err
	}
	if err := l.claim(c); err != nil {
		return err
	}
	l.plane.Programs = l.programs.Kubernetes
	nodes := l.nodesDir()
	if err := errors.Join(os.MkdirAll(l.plane.Dir, 0o700), os.MkdirAll(nodes, 0o755)); err != nil {
		return fmt.Errorf("create lab directory: %w", err)
	}
	if err := placement.Spread(nodes); err != nil {
		return err
	}
	return l.log.Step("start control plane of lab "+l.Name, func() error { return l.startPlane(ctx, c) })
}

// claim writes the state file first, so that whatever follows can be found.
func (l *Lab) claim(c Config) error {
	s := &state.State{Name: c.Name, Namespace: string(l.ns), Subnet: c.Subnet.String(), Nodes: map[string]state.Node{}}
	if !c.Stay {
		self, err := proc.Self()
		if err != nil {
			return err
		}
		s.Owner = &self
	}
	if err := os.MkdirAll(state.Dir, 0o700); err != nil {
		return fmt.Errorf("create lab state: %w", err)
	}
	if err := errors.Join(sysctl.Save(sysctlFile), sysctl.Raise()); err != nil {
		return err
	}
	if err := state.Create(s); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("lab %s is up already; take it down first: %w", c.Name, err)
	} else if err != nil {
		return err
	}
	return nil
}

func (l *Lab) startPlane(ctx context.Context, c Config) error {
	gateway := netip.PrefixFrom(l.Gateway(), c.Subnet.Bits())
	if err := l.ns.Create(ctx, gateway); err != nil {
		return err
	}
	if err := state.Update(l.Name, l.writeHosts); err != nil {
		return err
	}
	if err := l.startKeeper(ctx, !c.Stay); err != nil {
		return err
	}
	if err := l.plane.Start(ctx); err != nil {
		return err
	}
	if err := l.connect(); err != nil {
		return err
	}
	if err := kube.Prepare(ctx, l.client); err != nil {
		return err
	}
	return l.AddToken(ctx, Token, time.Time{})
}

// connect makes the clients.
func (l *Lab) connect() (err error) {
	if l.rest, err = kube.Config(l.Kubeconfig(), l.ns); err != nil {
		return err
	}
	if l.client, err = kubernetes.NewForConfig(l.rest); err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	return nil
}

func (l *Lab) startKeeper(ctx context.Context, owned bool) error {
	spec := keeper.Spec{Lab: l.Name, Namespace: l.ns, Address: l.Gateway().String(), HostsFile: l.hostsFile(),
		Kubeconfig: l.Kubeconfig(), Owned: owned}
	cmd, err := role.Command(keeper.Role, spec, filepath.Join(l.plane.Dir, "keeper.log"))
	if err != nil {
		return err
	}
	if owned {
		if l.keeper, err = cmd.StdinPipe(); err != nil {
			return fmt.Errorf("connect keeper: %w", err)
		}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start keeper: %w", err)
	}
	id, err := proc.Of("keeper", cmd.Process.Pid)
	if err != nil {
		return err
	}
	go func() { _, _ = cmd.Process.Wait() }()
	if err := l.recordProcess(id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return proc.Poll(ctx, "the lab's name server", func() (bool, error) {
		_, err := os.Stat(l.hostsFile() + ".served")
		return err == nil, err
	})
}

func (l *Lab) recordProcess(id proc.ID) error {
	return state.Update(l.Name, func(s *state.State) error {
		s.Processes = append(s.Processes, id)
		return nil
	})
}

func (l *Lab) nodesDir() string { return filepath.Join(state.DataDir, l.Name, "nodes") }

func (l *Lab) hostsFile() string { return filepath.Join(state.DataDir, l.Name, "hosts") }

// Attach returns a lab that another process started with Config.Stay.
func Attach(ctx context.Context, c Config) (*Lab, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	s, err := state.Load(c.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lab %s is not up: %w", c.Name, err)
	}
	if err != nil {
		return nil, err
	}
	if c.Subnet, err = netip.ParsePrefix(s.Subnet); err != nil {
		return nil, fmt.Errorf("read lab state: %w", err)
	}
	l, err := newLab(c)
	if err != nil {
		return nil, err
	}
	l.ns = netns.Namespace(s.Namespace)
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	l.plane.Programs = l.programs.Kubernetes
	return l, l.connect()
}
