// Package unitcheck tells the cluster by a condition of the Node whether the units
// of the applied document are as it wants them.
package unitcheck

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
)

// Systemd is the machine's.
type Systemd interface {
	Unit(ctx context.Context, name string) (host.UnitStatus, error)
	ListUnits(ctx context.Context, patterns ...string) ([]host.UnitStatus, error)
}

// Calls are the API server's.
type Calls interface {
	PatchNodeStatus(ctx context.Context, name string, patch []byte) (*core.Node, error)
}

// Check looks at units now and then.
type Check struct {
	Systemd Systemd
	Calls   Calls
	Node    *apiserver.Latest[core.Node]
	// Units are those of the document that is applied, which may be none; nil where no
	// document is: then there is nothing to tell.
	Units func() []Unit
	// Every is between two looks, Stuck how long a unit may start or stop.
	Every, Stuck time.Duration
	// Refresh is how long an unchanged condition stands before it is written again,
	// so that a reader sees that somebody still looks.
	Refresh time.Duration
	// Now, if set, asks for a look at once: a document was applied.
	Now <-chan struct{}

	// since is when a unit was first seen in its state: looks are frequent enough.
	since map[string]state
	// written is the condition that the Node got last.
	written core.NodeCondition
}

type state struct {
	active string
	at     time.Time
}

// Run looks until ctx ends.
func (c *Check) Run(ctx context.Context) error {
	every := time.NewTicker(c.Every)
	defer every.Stop()
	for {
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("unit check", "error", err)
		}
		select {
		case <-every.C:
		case <-c.Now:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *Check) look(ctx context.Context) error {
	node, _ := c.Node.Get()
	units := c.Units()
	if node == nil || units == nil {
		return nil
	}
	found, err := c.findings(ctx, units)
	if err != nil {
		return err
	}
	return c.write(ctx, node, condition(found))
}

// findings asks systemd once for all, and once more for each unit that does not
// simply run: that is most of them on most days.
func (c *Check) findings(ctx context.Context, units []Unit) ([]finding, error) {
	listed, err := c.Systemd.ListUnits(ctx, patterns(units)...)
	if err != nil {
		return nil, fmt.Errorf("list units: %w", err)
	}
	known := map[string]host.UnitStatus{}
	for _, s := range listed {
		known[s.Name] = s
	}
	found, since := make([]finding, 0, len(units)), map[string]state{}
	for _, u := range units {
		s, listed := known[u.Name]
		if !listed || s.ActiveState != "active" {
			if s, err = c.Systemd.Unit(ctx, u.Name); err != nil {
				return nil, fmt.Errorf("look at %s: %w", u.Name, err)
			}
		}
		at := state{s.ActiveState, time.Now()}
		if old := c.since[u.Name]; old.active == at.active {
			at = old
		}
		since[u.Name] = at
		found = append(found, byTheRules(u, s, time.Since(at.at), c.Stuck))
	}
	c.since = since
	return found, nil
}

// literal has patterns match names as they are: those of mounts have backslashes.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

func patterns(units []Unit) []string {
	all := make([]string, len(units))
	for i, u := range units {
		all[i] = literal.Replace(u.Name)
	}
	return all
}

// write patches the condition into the Node where it differs, and now and then.
func (c *Check) write(ctx context.Context, node *core.Node, want core.NodeCondition) error {
	now := meta.Now()
	old := conditionOf(node)
	if old != nil && equal(want, *old) && equal(want, c.written) && now.Sub(c.written.LastHeartbeatTime.Time) < c.Refresh {
		return nil
	}
	want.LastHeartbeatTime, want.LastTransitionTime = now, now
	if old != nil && old.Status == want.Status {
		want.LastTransitionTime = old.LastTransitionTime
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []core.NodeCondition{want}}})
	if err != nil {
		return fmt.Errorf("write condition: %w", err)
	}
	if _, err := c.Calls.PatchNodeStatus(ctx, node.Name, patch); err != nil {
		return fmt.Errorf("write condition %s: %w", ConditionType, err)
	}
	c.written = want
	return nil
}

func conditionOf(node *core.Node) *core.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == ConditionType {
			return c
		}
	}
	return nil
}

func equal(a, b core.NodeCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}
