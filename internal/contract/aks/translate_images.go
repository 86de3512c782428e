package aks

import "github.com/berth-dev/berth/internal/desired"

// images are those that came to the machine in a bundle: pods find them without a
// registry.
func (t *translation) images() error {
	for _, i := range t.facts.Images {
		t.state.Add(&desired.Image{
			Base:      desired.Base{After: []desired.ID{desired.UnitID("containerd.service")}},
			Reference: i.Reference, Digest: i.Digest,
		})
	}
	return nil
}
