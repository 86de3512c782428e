package builder

import (
	"cmp"
	"fmt"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/desired"
)

// Wanted is what a document wants that can be bundled.
type Wanted struct {
	Artifacts []*desired.Artifact
	Images    []string
}

func (w *Wanted) named(name string) (*desired.Artifact, bool) {
	for _, a := range w.Artifacts {
		if a.Name == name {
			return a, true
		}
	}
	return nil, false
}

// WantedBy is what a document wants of a bare machine, whichever one this is: the
// bundle is for others. No document wants nothing.
func WantedBy(c contract.Contract) (*Wanted, error) {
	if c == nil {
		return &Wanted{}, nil
	}
	st, err := c.Translate(component.Facts{Hostname: "localhost", IPv6: true})
	if err != nil {
		return nil, fmt.Errorf("translate the document: %w", err)
	}
	return wantedOf(st)
}

func wantedOf(st *desired.State) (*Wanted, error) {
	out := &Wanted{}
	for _, r := range st.Resources {
		if a, ok := r.(*desired.Artifact); ok {
			out.Artifacts = append(out.Artifacts, a)
		}
	}
	f, ok := st.Lookup(desired.FileID(containerd.ConfigFile)).(*desired.File)
	if !ok {
		return out, nil
	}
	image, err := sandboxImage(f.Content.Data())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", containerd.ConfigFile, err)
	}
	if image != "" {
		out.Images = append(out.Images, image)
	}
	return out, nil
}

// sandboxImage is the pause image in a configuration of containerd, of version 2
// or 3; "" leaves it to containerd.
func sandboxImage(config []byte) (string, error) {
	var c struct {
		Plugins struct {
			CRI struct {
				Sandbox string `toml:"sandbox_image"`
			} `toml:"io.containerd.grpc.v1.cri"`
			Images struct {
				Pinned map[string]string `toml:"pinned_images"`
			} `toml:"io.containerd.cri.v1.images"`
		} `toml:"plugins"`
	}
	err := toml.Unmarshal(config, &c)
	return cmp.Or(c.Plugins.CRI.Sandbox, c.Plugins.Images.Pinned["sandbox"]), err
}
