// Package restart restarts units that an annotation of the Node names.
package restart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
)

// Annotation is a list of units with commas between them.
const Annotation = "worker.gardener.cloud/restart-systemd-services"

// reason of the events, as published.
const reason = "SystemDUnitRestart"

// patience is how long a unit may take to restart.
const patience = 5 * time.Minute

// ErrRestart is the answer when the agent itself was named: its process has to end
// so that systemd starts it again.
var ErrRestart = errors.New("annotation " + Annotation + " asks for a restart of the agent")

// Systemd is the machine's.
type Systemd interface {
	Unit(ctx context.Context, name string) (host.UnitStatus, error)
	RestartUnit(ctx context.Context, name string) error
}

// Calls are the API server's.
type Calls interface {
	PatchNode(ctx context.Context, name string, patch []byte) (*core.Node, error)
}

// Recorder tells people.
type Recorder interface {
	Normal(reason, message string)
	Warning(reason, message string)
}

// Restarts does what the annotation asks for.
type Restarts struct {
	Systemd Systemd
	Calls   Calls
	Events  Recorder
	Node    *apiserver.Latest[core.Node]
	// Own is the agent's own unit.
	Own string
}

// Run restarts units until ctx ends. Each request is done once, and then taken
// away whatever came of it; killed in between, it is done again. ErrRestart comes
// last, when the annotation is gone.
func (r *Restarts) Run(ctx context.Context) error {
	for node := range r.Node.Each(ctx) {
		if node == nil || strings.TrimSpace(node.Annotations[Annotation]) == "" {
			continue
		}
		names := Names(node.Annotations[Annotation])
		own := slices.Contains(names, r.Own)
		for _, name := range names {
			if name != r.Own {
				r.restart(ctx, name)
			}
		}
		if r.remove(ctx, node.Name, node.Annotations[Annotation]) && own {
			return ErrRestart
		}
	}
	return nil
}

// unitTypes are the endings by which systemd knows what a unit is.
var unitTypes = []string{".service", ".socket", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope", ".device"}

// Names are the units of a list, each once; a name without a type is a service's.
func Names(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !slices.ContainsFunc(unitTypes, func(t string) bool { return strings.HasSuffix(name, t) }) {
			name += ".service"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (r *Restarts) restart(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.try(ctx, name); err != nil {
		slog.Warn("restart that the Node's annotation asks for", "unit", name, "error", err)
		r.Events.Warning(reason, fmt.Sprintf("restart of %s failed: %v", name, err))
		return
	}
	r.Events.Normal(reason, "restarted "+name+", as annotation "+Annotation+" asks for")
}

func (r *Restarts) try(ctx context.Context, name string) error {
	s, err := r.Systemd.Unit(ctx, name)
	if err != nil {
		return err
	}
	if s.LoadState == "not-found" {
		return errors.New("there is no such unit")
	}
	return r.Systemd.RestartUnit(ctx, name)
}

// remove takes the annotation away as long as it has the value that was done, and
// says whether it is gone. A request that came meanwhile stays: it is next.
func (r *Restarts) remove(ctx context.Context, name, done string) bool {
	next := apiserver.Intervals(time.Second, time.Minute)
	for {
		node, _ := r.Node.Get()
		if node == nil || node.Annotations[Annotation] != done {
			return true
		}
		err := r.patch(ctx, node)
		if err == nil {
			return r.gone(ctx, done)
		}
		if !apierrors.IsConflict(err) {
			slog.Warn("take away annotation", "annotation", Annotation, "node", name, "error", err)
		}
		if !apiserver.Pause(ctx, next.NextBackOff()) {
			return false
		}
	}
}

// patch is for the version that was seen: in a newer one the annotation may ask
// for something else.
func (r *Restarts) patch(ctx context.Context, node *core.Node) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": node.ResourceVersion, "annotations": map[string]any{Annotation: nil}}})
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	_, err = r.Calls.PatchNode(ctx, node.Name, patch)
	return err
}

// gone waits until the Node is seen without the request: what was done must not
// be taken for a new one.
func (r *Restarts) gone(ctx context.Context, done string) bool {
	for node := range r.Node.Each(ctx) {
		if node == nil || node.Annotations[Annotation] != done {
			return true
		}
	}
	return false
}
