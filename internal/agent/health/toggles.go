package health

import (
	"context"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/apiserver"
)

const (
	// So many returns to Ready within so long are told, as published.
	toggles         = 5
	togglesTogether = 10 * time.Minute
)

// Toggles tells when the Node goes from NotReady to Ready and back all the time.
type Toggles struct {
	Events Recorder
	Node   *apiserver.Latest[core.Node]

	notReady bool
	returns  []time.Time
}

// Run looks at each state of the Node until ctx ends.
func (t *Toggles) Run(ctx context.Context) error {
	for node := range t.Node.Each(ctx) {
		if node == nil {
			continue
		}
		for _, c := range node.Status.Conditions {
			if c.Type == core.NodeReady {
				t.see(c.Status == core.ConditionTrue)
			}
		}
	}
	return nil
}

func (t *Toggles) see(ready bool) {
	back := ready && t.notReady
	t.notReady = !ready
	if !back {
		return
	}
	now := time.Now()
	t.returns = append(t.returns, now)
	for now.Sub(t.returns[0]) > togglesTogether {
		t.returns = t.returns[1:]
	}
	if len(t.returns) >= toggles {
		t.Events.Warning("kubelet", fmt.Sprintf("the Node became NotReady and Ready again %d times within %s", len(t.returns), togglesTogether))
		t.returns = nil
	}
}
