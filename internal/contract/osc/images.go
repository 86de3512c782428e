package osc

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/desired"
)

// image adds a file to those that come out of its image: one pull for all.
func (t *translation) image(at *field.Path, f *v1alpha1.File) {
	ref := f.Content.ImageRef
	name, _ := imageName(ref.Image) // validation has read it
	out := desired.ArtifactFile{Member: ref.FilePathInImage, Path: f.Path, Mode: modeOf(f), Field: at.String()}
	for _, a := range t.images() {
		if a.Image == name {
			a.Files = append(a.Files, out)
			return
		}
	}
	t.add(at, &desired.Artifact{Name: name, Image: name, Files: []desired.ArtifactFile{out}})
}

func (t *translation) images() []*desired.Artifact {
	var out []*desired.Artifact
	for _, r := range t.state.Resources {
		if a, ok := r.(*desired.Artifact); ok {
			out = append(out, a)
		}
	}
	return out
}

// pulls tells each image what the document's own files say of registries, and what
// those files name: they count for the first pull, too.
func (t *translation) pulls() {
	ahead := map[string]desired.Content{}
	for _, r := range t.state.Resources {
		f, ok := r.(*desired.File)
		if !ok || !strings.HasPrefix(f.Path, containerd.HostsDir+"/") {
			continue
		}
		ahead[f.Path] = f.Content
		for _, other := range t.state.Resources {
			if named, ok := other.(*desired.File); ok && strings.Contains(string(f.Content.Data()), named.Path) {
				ahead[named.Path] = named.Content
			}
		}
	}
	for _, a := range t.images() {
		if len(ahead) > 0 {
			a.Ahead = ahead
		}
	}
}
