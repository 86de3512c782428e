package contract

import (
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract/aks"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/desired"
)

type aksContract struct{ doc *aks.Document }

func decodeAKS(data []byte) (Contract, error) {
	doc, err := aks.Decode(data)
	if err != nil {
		return nil, err
	}
	return &aksContract{doc}, nil
}

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
	return Terms{
		Timeout:    decode.Timeout(int64(c.doc.Config.GetCseTimeout())),
		ImageBuild: c.doc.Config.GetPreProvisionOnly(),
	}
}
