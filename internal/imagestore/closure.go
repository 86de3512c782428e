package imagestore

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/oci"
)

// gcContent begins the labels by which containerd's garbage collection goes from
// a manifest to what it needs.
const gcContent = "containerd.io/gc.ref.content."

// blob is one item of an image.
type blob struct {
	ocispec.Descriptor
	// labels are what the blob must have in the content store.
	labels map[string]string
}

// closure is what one machine needs of an image.
type closure struct {
	target, config ocispec.Descriptor
	// leaves are layers and config, parents the manifest and then the indexes that
	// lead to it. A blob stands once.
	leaves, parents []blob
}

// resolve reads an image's manifests and config, each verified before it is
// believed, and lists what this machine needs of it.
func resolve(ctx context.Context, source oci.Source, root string) (*closure, error) {
	content, err := oci.Walk(ctx, source, ocispec.Descriptor{Digest: digest.Digest(root), Size: -1}, oci.Linux(runtime.GOARCH))
	if err == nil {
		_, err = content.Image(ctx)
	}
	if err != nil {
		return nil, coded(err)
	}
	c := &closure{target: content.Root(), config: content.Config}
	for _, n := range slices.Backward(content.Way) {
		c.parents = append(c.parents, blob{n.Descriptor, childLabels(n.Manifest)})
	}
	seen := map[digest.Digest]bool{}
	for _, d := range append(slices.Clone(content.Layers), content.Config) {
		if !seen[d.Digest] {
			c.leaves = append(c.leaves, blob{Descriptor: d})
		}
		seen[d.Digest] = true
	}
	return c, nil
}

// coded gives what is wrong with an image the published code for it.
func coded(err error) error {
	if _, foreign := errors.AsType[*oci.PlatformError](err); foreign {
		return &exitcode.Error{Number: exitcode.Containerd, Err: err}
	}
	if oci.IsContent(err) {
		return &exitcode.Error{Number: exitcode.Digest, Err: err}
	}
	return err
}

// childLabels name what a manifest refers to, as containerd itself does after a
// pull.
func childLabels(doc *oci.Manifest) map[string]string {
	labels := map[string]string{}
	for i, m := range doc.Manifests {
		labels[gcContent+"m."+strconv.Itoa(i)] = m.Digest.String()
	}
	if doc.Config != nil {
		labels[gcContent+"config"] = doc.Config.Digest.String()
	}
	for i, l := range doc.Layers {
		labels[gcContent+"l."+strconv.Itoa(i)] = l.Digest.String()
	}
	return labels
}
