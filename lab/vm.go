package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/lab/internal/cache"
	"github.com/berth-dev/berth/lab/internal/hostdeps"
	"github.com/berth-dev/berth/lab/internal/image"
	"github.com/berth-dev/berth/lab/internal/netns"
	"github.com/berth-dev/berth/lab/internal/state"
	"github.com/berth-dev/berth/lab/internal/vm"
)

// VMConfig says what emulated machine to add. See NodeConfig for the fields.
type VMConfig struct {
	Name         string
	Flavour      Flavour
	UserData     []byte
	InstanceID   string
	WithoutBerth bool
	IP           netip.Addr
	// Cards is how many network cards the machine has beside the first: see VM.Cards.
	Cards int
	// KernelLine is added to the kernel's command line, at every boot.
	KernelLine string
}

// VM is an emulated machine with its own kernel, cgroup v2 and disk.
type VM struct {
	*vm.VM
	Name string
	IP   netip.Addr
	// Cards are those beside the first.
	Cards []vm.Card

	lab *Lab
	tap string
	dir string
}

// AddVM makes a machine and turns it on. It is Linux-ready after a minute or so.
func (l *Lab) AddVM(ctx context.Context, c VMConfig) (*VM, error) {
	if !validName.MatchString(c.Name) {
		return nil, fmt.Errorf("create machine: bad name %q", c.Name)
	}
	if err := hostdeps.VMs(ctx, l.log); err != nil {
		return nil, err
	}
	if c.Flavour == "" {
		c.Flavour = Prebaked
	}
	img, err := l.vmImage(ctx, c)
	if err != nil {
		return nil, err
	}
	v, err := l.registerVM(c)
	if err != nil {
		return nil, err
	}
	if err := v.create(ctx, c, img); err != nil {
		return nil, err
	}
	return v, v.Boot(ctx)
}

// vmImage builds the disk that machines of a flavour start from.
func (l *Lab) vmImage(ctx context.Context, c VMConfig) (vm.Image, error) {
	lowers, err := image.MachineLowers(ctx, l.cache, c.Flavour, l.programs)
	if err != nil {
		return vm.Image{}, err
	}
	if l.berth != "" && !c.WithoutBerth {
		lowers = append([]string{l.berth}, lowers...)
	}
	src := filepath.Join(l.root, "lab/internal/vm")
	key, err := cache.FileKey(strings.Join(lowers, ":")+l.pause+string(l.resolvConf()), filepath.Join(src, "rootfs.go"), filepath.Join(src, "image.go"))
	if err != nil {
		return vm.Image{}, err
	}
	dir, err := l.cache.Entry(ctx, "vm-image", key, func(ctx context.Context, dir string) error {
		return l.log.Step("build the disk of "+string(c.Flavour)+" machines", func() error { return l.fillVMImage(ctx, c, lowers, dir) })
	})
	if err != nil {
		return vm.Image{}, err
	}
	err = l.cache.Prune("vm-image", key, 6*time.Hour)
	return vm.Image{Disk: filepath.Join(dir, "disk.img"), Kernel: filepath.Join(dir, "vmlinuz"), Initrd: filepath.Join(dir, "initrd.img")}, err
}

func (l *Lab) fillVMImage(ctx context.Context, c VMConfig, lowers []string, dir string) error {
	return image.WithTree(lowers, dir, func(root string) error {
		if err := vm.PrepareRootfs(root); err != nil {
			return err
		}
		// networkd hands name servers to resolved only, which is not there.
		if err := os.WriteFile(filepath.Join(root, "etc/resolv.conf"), l.resolvConf(), 0o644); err != nil {
			return fmt.Errorf("write resolv.conf: %w", err)
		}
		if c.Flavour == Prebaked {
			if err := copyTree(filepath.Join(l.pause, "containerd"), filepath.Join(root, "var/lib/containerd")); err != nil {
				return err
			}
		}
		_, err := vm.BuildImage(ctx, vm.ImageOptions{Rootfs: root, Out: dir})
		return err
	})
}

// copyTree copies a directory's contents with all their attributes.
func copyTree(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}

func (l *Lab) registerVM(c VMConfig) (*VM, error) {
	sum := sha256.Sum256([]byte(l.Name + "/vm/" + c.Name))
	id := hex.EncodeToString(sum[:5])
	// Short: sockets are made in it.
	v := &VM{Name: c.Name, IP: c.IP, lab: l, tap: "tap-" + id, dir: filepath.Join(state.DataDir, l.Name, "vm-"+id)}
	err := state.Update(l.Name, func(s *state.State) error {
		if _, ok := s.VMs[c.Name]; ok {
			return fmt.Errorf("create machine %s: there is one", c.Name)
		}
		if !v.IP.IsValid() {
			v.IP = freeAddress(l.subnet, s)
		}
		if s.VMs == nil {
			s.VMs = map[string]state.VM{}
		}
		s.VMs[c.Name] = state.VM{IP: v.IP.String(), Dir: v.dir, Tap: v.tap}
		return l.writeHosts(s)
	})
	return v, err
}

func (v *VM) create(ctx context.Context, c VMConfig, img vm.Image) error {
	if err := vm.AddTap(ctx, v.lab.spawn, netns.Bridge, v.tap); err != nil {
		return err
	}
	for i := range c.Cards {
		v.Cards = append(v.Cards, v.card(i+1))
	}
	machine, err := vm.New(ctx, vm.Config{Name: c.Name, Dir: v.dir, Image: img, MAC: v.MAC(), Tap: v.tap, Further: v.Cards, Spawn: v.lab.spawn,
		Seed: v.seed(c.InstanceID, c.UserData), Append: c.KernelLine})
	v.VM = machine
	return err
}

// seed is the machine's NoCloud disk with another instance-id or user data,
// for SetSeed.
func (v *VM) seed(instanceID string, userData []byte) vm.Seed {
	if instanceID == "" {
		instanceID = "i-" + v.Name
	}
	cidr := netip.PrefixFrom(v.IP, v.lab.subnet.Bits()).String()
	s := vm.SeedFor(instanceID, v.Name, v.MAC(), cidr, v.lab.Gateway().String(), userData)
	s.NetworkConfig = append(s.NetworkConfig, "    nameservers: {addresses: ["+v.lab.Gateway().String()+"]}\n"...)
	return s
}

// MAC is the first card's hardware address. It is derived from the IP address, which is
// the machine's own.
func (v *VM) MAC() string {
	b := v.IP.As4()
	return fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

// card is the nth one beside the first. Its network is nobody else's.
func (v *VM) card(n int) vm.Card {
	b := v.IP.As4()
	return vm.Card{MAC: fmt.Sprintf("52:55:%02x:%02x:%02x:%02x", n, b[1], b[2], b[3]),
		Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(n), 0}), 24)}
}

// SetInstance gives a machine that is off a new instance-id and user data.
func (v *VM) SetInstance(id string, userData []byte) error {
	return v.SetSeed(v.seed(id, userData))
}

// Partition cuts the machine off the network, or connects it again.
func (v *VM) Partition(ctx context.Context, cut bool) error {
	return vm.SetLink(ctx, v.lab.spawn, v.tap, !cut)
}

// Remove turns the power off and removes the disk.
func (v *VM) Remove(ctx context.Context) error {
	err := errors.Join(v.Close(), vm.DeleteTap(ctx, v.lab.spawn, v.tap), os.RemoveAll(v.dir))
	return errors.Join(err, state.Update(v.lab.Name, func(s *state.State) error {
		delete(s.VMs, v.Name)
		return v.lab.writeHosts(s)
	}))
}

// spawn starts a program in the lab's network namespace.
func (l *Lab) spawn(cmd *exec.Cmd) error { return l.ns.Do(cmd.Start) }
