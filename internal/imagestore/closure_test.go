package imagestore

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/oci"
)

func TestResolve(t *testing.T) {
	img := multi("a", 1, 10, 20)
	c, err := resolve(t.Context(), img.Source, img.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if c.target.Digest.String() != img.Digest || c.target.MediaType != ocispec.MediaTypeImageIndex || c.target.Size == 0 {
		t.Errorf("target %+v", c.target)
	}
	var leaves []string
	for _, b := range c.leaves {
		leaves = append(leaves, b.Digest.String())
	}
	if diff := cmp.Diff(append(slices.Clone(img.layers), c.config.Digest.String()), leaves); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{"containerd.io/gc.ref.content.config": c.config.Digest.String(),
		"containerd.io/gc.ref.content.l.0": img.layers[0], "containerd.io/gc.ref.content.l.1": img.layers[1]}
	if diff := cmp.Diff(want, c.parents[0].labels); diff != "" || len(c.parents) != 2 || c.parents[1].Digest.String() != img.Digest {
		t.Error(diff, c.parents)
	}
}

// What can't run here is refused before containerd is asked.
func TestResolveRefuses(t *testing.T) {
	foreign := newSample("a")
	foreign.Digest = foreign.addManifest(ocispec.Platform{OS: "linux", Architecture: "s390x"}, 1, 10).Digest.String()
	if _, err := resolve(t.Context(), foreign.Source, foreign.Digest); exitcode.Of(err) != exitcode.Containerd || !is[*oci.PlatformError](err) || !strings.Contains(err.Error(), "it is for linux/s390x") {
		t.Errorf("%T: %v", err, err)
	}
	odd := newSample("a")
	odd.Digest = odd.add("", []byte("{}")).Digest.String()
	if _, err := resolve(t.Context(), odd.Source, odd.Digest); exitcode.Of(err) != exitcode.Digest || !is[*oci.ManifestError](err) {
		t.Errorf("%T: %v", err, err)
	}
	broken := single("a", 1)
	broken.broken[broken.Digest] = []byte("{}")
	if _, err := resolve(t.Context(), broken.Source, broken.Digest); exitcode.Of(err) != exitcode.Digest || !is[*oci.DigestError](err) {
		t.Errorf("%T: %v", err, err)
	}
	pinned := Image{Reference: "r.test/a@sha256:" + strings.Repeat("a", 64), Digest: "sha256:" + strings.Repeat("b", 64)}
	if err := (&Store{}).Import(t.Context(), pinned); !is[*DigestError](err) {
		t.Error(err)
	}
}
