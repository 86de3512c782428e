package cli

import (
	"context"
	"fmt"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/desired"
)

// wishes are what a document wants that can be bundled.
type wishes struct {
	artifacts []*desired.Artifact
	images    []string
}

func (w *wishes) named(name string) (*desired.Artifact, bool) {
	for _, a := range w.artifacts {
		if a.Name == name {
			return a, true
		}
	}
	return nil, false
}

// fromDocument reads what a document wants of a bare machine, whichever one this
// is: the bundle is for others.
func (w *workbench) fromDocument(ctx context.Context, file string) (*wishes, error) {
	if file == "" {
		return &wishes{}, nil
	}
	b, err := readDocument(ctx, file)
	if err != nil {
		return nil, err
	}
	c, err := decode(b)
	if err != nil {
		return nil, err
	}
	st, err := c.Translate(component.Facts{Hostname: "localhost", IPv6: true})
	if err != nil {
		return nil, fmt.Errorf("translate %s: %w", file, err)
	}
	return wishesOf(st)
}

func wishesOf(st *desired.State) (*wishes, error) {
	out := &wishes{}
	for _, r := range st.Resources {
		if a, ok := r.(*desired.Artifact); ok {
			out.artifacts = append(out.artifacts, a)
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
		out.images = append(out.images, image)
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
	return or(c.Plugins.CRI.Sandbox, c.Plugins.Images.Pinned["sandbox"]), err
}
