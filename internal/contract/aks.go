package contract

import (
	"time"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract/aks"
	"github.com/berth-dev/berth/internal/desired"
)

// The contract's default and limit of cse_timeout.
const (
	defaultDeadline = 15 * time.Minute
	maxDeadline     = 6 * time.Hour
)

type aksContract struct{ doc *aks.Document }

func (c *aksContract) Kind() Kind { return AKS }

func (c *aksContract) Notes() []desired.FieldNote {
	var out []desired.FieldNote
	for _, n := range c.doc.Notes {
		out = append(out, desired.FieldNote{Path: n.Path, Reason: n.Detail})
	}
	return out
}

func (c *aksContract) Translate(f component.Facts) (*desired.State, error) {
	return aks.Translate(c.doc, f)
}

func (c *aksContract) Terms() Terms {
	d := time.Duration(c.doc.Config.GetCseTimeout()) * time.Second
	if d <= 0 || d > maxDeadline {
		d = defaultDeadline
	}
	return Terms{Deadline: d, Bake: c.doc.Config.GetPreProvisionOnly()}
}
