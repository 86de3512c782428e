package health

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/apiserver"
)

// calm is how long kubelet is left alone after a restart for its address.
const calm = 10 * time.Minute

// Calls are the API server's.
type Calls interface {
	PatchNodeStatus(ctx context.Context, name string, patch []byte) (*core.Node, error)
}

// Address gives the Node back its internal address, which a kubelet loses that
// can't reach the cloud's metadata: pods of the host network are without one then.
type Address struct {
	Systemd Systemd
	Calls   Calls
	Events  Recorder
	Node    *apiserver.Latest[core.Node]
	// Kubelet is kubelet's unit.
	Kubelet string
	// Here says whether an interface of the machine has an address; nil asks the
	// kernel.
	Here func(ip string) bool
	// Paused, if set and true: kubelet is not restarted.
	Paused func() bool

	last      string
	restarted time.Time
}

// Run looks at each state of the Node until ctx ends.
func (a *Address) Run(ctx context.Context) error {
	if a.Here == nil {
		a.Here = onInterface
	}
	for node := range a.Node.Each(ctx) {
		if node == nil {
			continue
		}
		if ip, external := addresses(node); ip != "" {
			a.last = ip
		} else if !external && a.last != "" && a.Here(a.last) {
			a.restore(ctx, node.Name)
		}
	}
	return nil
}

// addresses are the Node's: its internal one, and whether it has an external one.
func addresses(node *core.Node) (internal string, external bool) {
	for _, a := range node.Status.Addresses {
		switch a.Type {
		case core.NodeInternalIP:
			internal = a.Address
		case core.NodeExternalIP:
			external = true
		}
	}
	return internal, external
}

func (a *Address) restore(ctx context.Context, node string) {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"addresses": []core.NodeAddress{{Type: core.NodeInternalIP, Address: a.last}}}})
	if err == nil {
		_, err = a.Calls.PatchNodeStatus(ctx, node, patch)
	}
	switch {
	case err == nil:
		a.Events.Warning("kubelet", "the Node had lost its internal address "+a.last+"; it has it back")
	case ctx.Err() != nil || apierrors.IsConflict(err):
	case time.Since(a.restarted) >= calm && (a.Paused == nil || !a.Paused()):
		a.restart(ctx, err)
	}
}

func (a *Address) restart(ctx context.Context, why error) {
	ctx, cancel := context.WithTimeout(ctx, job)
	defer cancel()
	a.restarted = time.Now()
	text := fmt.Sprintf("the Node has lost its internal address %s and can't be given it back: %v; restarted %s", a.last, why, a.Kubelet)
	if err := a.Systemd.RestartUnit(ctx, a.Kubelet); err != nil {
		text = fmt.Sprintf("the Node has lost its internal address %s, and restart of %s failed: %v", a.last, a.Kubelet, err)
	}
	slog.Warn(text)
	a.Events.Warning("kubelet", text)
}

func onInterface(ip string) bool {
	here, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	want := net.ParseIP(ip)
	for _, a := range here {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(want) {
			return true
		}
	}
	return false
}
