package provision

import (
	"strings"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/host"
)

// metadataCompute are the tags of the virtual machine: its owner's words, beside
// the configuration.
type metadataCompute struct {
	Tags []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"tagsList"`
}

// rotationTag takes the serving certificate out of the cluster's hands.
const rotationTag = "aks-disable-kubelet-serving-certificate-rotation"

// rotationOff reads a tag as the published scripts do: the name somewhere in it, in
// any case, and true somewhere in the value.
func (c metadataCompute) rotationOff() bool {
	for _, t := range c.Tags {
		if strings.Contains(strings.ToLower(t.Name), rotationTag) && strings.Contains(strings.ToLower(t.Value), "true") {
			return true
		}
	}
	return false
}

// rotationWasOff is what the last run knew of the tag.
func rotationWasOff(h host.FS) bool {
	b, err := h.ReadFile(kubelet.FlagsFile)
	return err == nil && strings.Contains("\n"+string(b), "\n"+kubelet.RotationOffVariable+"=")
}
