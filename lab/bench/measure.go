package bench

import (
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// machine is the user data of every measured node: what must be there before
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

// measure boots a fresh node, joins it and removes it.
func (b *bench) measure(ctx context.Context, c Case, s side, out *[]Run) error {
	b.n++
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	n, err := b.lab.AddNode(ctx, lab.NodeConfig{Name: fmt.Sprintf("%s-%d", s, b.n), UserData: machine})
	if err != nil {
		return err
	}
	run, err := b.join(ctx, n, c, s)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, n.Tail(ctx, 60))
	}
	*out = append(*out, run)
	if err := n.Remove(ctx); err != nil {
		return err
	}
	return b.lab.Client().CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})
}

func (b *bench) join(ctx context.Context, n *lab.Node, c Case, s side) (Run, error) {
	if _, err := n.WaitBooted(ctx); err != nil {
		return Run{}, err
	}
	command, err := b.command(n, c, s)
	if err != nil {
		return Run{}, err
	}
	if err := b.prepare(ctx, n, c, s); err != nil {
		return Run{}, err
	}
	w, err := b.watch(ctx, n.Name)
	if err != nil {
		return Run{}, err
	}
	defer w.stop()
	start := time.Now()
	if err := n.Run(ctx, command...); err != nil {
		return Run{}, err
	}
	run := Run{Command: time.Since(start)}
	if err := w.ready(ctx); err != nil {
		return run, err
	}
	run.Registered, run.Ready = w.registeredAt.Sub(start), w.readyAt.Sub(start)
	run.Kubelet, err = kubeletStart(ctx, n, start)
	return run, err
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
	return []string{"aks-node-controller", "provision", "--provision-config=" + configPath, "--wait-for=ready"}, nil
}

// prepare brings containerd and the page cache into the state of the case. Where
// containerd is to run for berth, it runs with the configuration that berth
// wants: both sides find it in order and leave it alone. kubelet's unit is part
// of kubeadm's packages; berth brings its own.
func (b *bench) prepare(ctx context.Context, n *lab.Node, c Case, s side) error {
	steps := []string{"ln -sf /usr/local/bin/berth /usr/local/bin/aks-node-controller", "systemctl stop containerd"}
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
	return settle(ctx, c.Cold)
}

// settle lets the machine come to rest: dirty pages written, boot work done.
func settle(ctx context.Context, cold bool) error {
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

type watcher struct {
	events                <-chan nodeEvent
	stop                  func()
	registeredAt, readyAt time.Time
}

type nodeEvent struct {
	at    time.Time
	ready bool
}

// watch stamps events of one Node as they arrive.
func (b *bench) watch(ctx context.Context, name string) (*watcher, error) {
	w, err := b.lab.Client().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		return nil, err
	}
	events := make(chan nodeEvent, 100)
	go func() {
		defer close(events)
		for e := range w.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok {
				events <- nodeEvent{time.Now(), isReady(n)}
			}
		}
	}()
	return &watcher{events: events, stop: w.Stop}, nil
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (w *watcher) ready(ctx context.Context) error {
	for {
		select {
		case e, ok := <-w.events:
			if !ok {
				return fmt.Errorf("the watch ended before the node was Ready")
			}
			if w.registeredAt.IsZero() {
				w.registeredAt = e.at
			}
			if e.ready {
				w.readyAt = e.at
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for Ready: %w", ctx.Err())
		}
	}
}

// kubeletStart reads from systemd when kubelet's process started.
func kubeletStart(ctx context.Context, n *lab.Node, start time.Time) (time.Duration, error) {
	text, err := n.Output(ctx, "systemctl", "show", "kubelet", "--value", "--property=ExecMainStartTimestamp", "--timestamp=us+utc")
	if err != nil {
		return 0, err
	}
	at, err := time.Parse("Mon 2006-01-02 15:04:05.000000 MST", strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("read kubelet's start: %w", err)
	}
	return at.Sub(start), nil
}

// userData is the decoded CustomData of a configuration.
func userData(cfg *aksnodeconfigv1.Configuration) ([]byte, error) {
	boot, err := nodeconfigutils.GetNodeBootstrapping(cfg)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(boot.CustomData)
}
