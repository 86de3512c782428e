package bench

import (
	"context"
	_ "embed"
	"encoding/base64"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// machine is the user data of every node that joins: what must be there before
// kubeadm join. berth finds the same machine.
//
//go:embed testdata/machine.yaml
var machine []byte

const configPath = "/root/node.json"

type bench struct {
	lab *lab.Lab
	log io.Writer
	n   int
}

type side string

const (
	kubeadm side = "kubeadm"
	berth   side = "berth"
)

// measure joins a fresh node.
func (b *bench) measure(ctx context.Context, c Case, s side, out *[]Run) error {
	return b.fresh(ctx, lab.NodeConfig{Name: string(s), UserData: machine}, func(ctx context.Context, n *lab.Node) error {
		run, err := b.join(ctx, n, c, s)
		if err == nil {
			*out = append(*out, run)
		}
		return err
	})
}

func (b *bench) join(ctx context.Context, n *lab.Node, c Case, s side) (Run, error) {
	command, err := b.command(n, c, s)
	if err != nil {
		return Run{}, err
	}
	if err := b.prepare(ctx, n, c, s); err != nil {
		return Run{}, err
	}
	return b.timed(ctx, n, command)
}

func (b *bench) command(n *lab.Node, c Case, s side) ([]string, error) {
	if s == kubeadm {
		join, err := b.lab.KubeadmJoin()
		if !c.Containerd {
			join = append([]string{"sh", "-c", `systemctl start containerd && exec "$@"`, "sh"}, join...)
		}
		return join, err
	}
	cfg, err := b.lab.NodeConfiguration()
	if err != nil {
		return nil, err
	}
	cfg.NetworkConfig.NetworkPlugin = aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_NONE // the machine has a CNI configuration
	text, err := nodeconfigutils.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	if err := n.WriteFile(configPath, text, 0o600); err != nil {
		return nil, err
	}
	return provision(), nil
}

// provision is the command, by the program that kubelet's unit runs, too: on a machine of a
// client there is one, and a second one would be read from the disk once more.
func provision() []string {
	return []string{"/opt/azure/containers/aks-node-controller", "provision", "--provision-config=" + configPath, "--wait-for=ready"}
}

// prepare brings containerd and the page cache into the state of the case. Where
// containerd is to run for berth, it runs with the configuration that berth
// wants: both sides find it in order and leave it alone. kubelet's unit is part
// of kubeadm's packages; berth brings its own.
func (b *bench) prepare(ctx context.Context, n *lab.Node, c Case, s side) error {
	steps := []string{"systemctl stop containerd"}
	if s == berth {
		steps = append(steps, "rm -r /etc/systemd/system/kubelet.service /etc/systemd/system/kubelet.service.d", "systemctl daemon-reload")
	}
	if c.Containerd && s == berth {
		steps = append(steps, "berth render -f "+configPath+" -o json > /root/state.json")
	}
	if err := n.Run(ctx, "sh", "-ec", strings.Join(steps, "; ")); err != nil {
		return err
	}
	if c.Containerd && s == berth {
		if err := layContainerd(ctx, n); err != nil {
			return err
		}
	}
	if c.Containerd {
		if err := n.Run(ctx, "sh", "-ec", "systemctl daemon-reload; systemctl start containerd"); err != nil {
			return err
		}
	}
	return quiesce(ctx, c.Cold)
}

// quiesce lets the machine come to rest: dirty pages written, boot work done.
func quiesce(ctx context.Context, cold bool) error {
	syscall.Sync()
	select {
	case <-time.After(1500 * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	if !cold {
		return nil
	}
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
}

// userData is the decoded CustomData of a configuration.
func userData(cfg *aksnodeconfigv1.Configuration) ([]byte, error) {
	boot, err := nodeconfigutils.GetNodeBootstrapping(cfg)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(boot.CustomData)
}
