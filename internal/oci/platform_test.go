package oci

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// entry is one of an index: os/arch[/variant]; "" names no platform.
func entry(text string) v1.Descriptor {
	d := v1.Descriptor{MediaType: v1.MediaTypeImageManifest}
	if part := append(strings.Split(text, "/"), ""); text != "" {
		d.Platform = &v1.Platform{OS: part[0], Architecture: part[1], Variant: part[2]}
	}
	return d
}

func text(d v1.Descriptor) string {
	if d.Platform == nil {
		return ""
	}
	return strings.TrimSuffix(d.Platform.OS+"/"+d.Platform.Architecture+"/"+d.Platform.Variant, "/")
}

// TestChoose is what containerd would run of an index.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		machine, want string
		index         []string
	}{
		{"amd64", "linux/amd64", []string{"linux/amd64/v3", "windows/amd64", "unknown/unknown", "linux/amd64", "linux/arm64/v8"}},
		{"amd64", "linux/amd64/v1", []string{"linux/amd64/v2", "linux/amd64/v1"}},
		{"amd64", "linux/amd64", []string{"", "linux/386", "linux/amd64"}},
		{"amd64", "linux/386", []string{"", "linux/arm64", "linux/386"}},
		{"amd64", "", []string{"linux/arm64", ""}},
		{"arm64", "linux/arm64/v8", []string{"linux/arm/v7", "linux/arm64/v8", "linux/arm64"}},
		{"arm64", "linux/arm64", []string{"linux/arm64/v9", "linux/arm64"}},
		{"arm64", "linux/arm/v7", []string{"linux/arm/v5", "linux/arm/v7", "linux/arm/v6"}},
		{"arm", "linux/arm/v7", []string{"linux/arm/v5", "linux/arm/v7", "linux/arm/v6"}},
		{"arm", "linux/arm", []string{"linux/arm/v6", "linux/arm"}},
		{"arm", "linux/arm/v6", []string{"linux/arm/v5", "linux/arm/v6", "linux/arm64"}},
		{"riscv64", "linux/riscv64", []string{"linux/amd64", "linux/riscv64"}},
	} {
		m := &Manifest{}
		for _, e := range c.index {
			m.Manifests = append(m.Manifests, entry(e))
		}
		if got, err := Linux(c.machine).choose(Node{Manifest: m}); err != nil || text(got) != c.want {
			t.Errorf("%s of %q: %s, %v", c.machine, c.index, text(got), err)
		}
	}
}

func TestChooseRefuses(t *testing.T) {
	m := &Manifest{Manifests: []v1.Descriptor{entry("linux/arm64/v8"), entry("unknown/unknown"), entry("linux/amd64/v3"), entry("linux/arm64/v8"), {MediaType: "application/x-other"}}}
	_, err := Linux("amd64").choose(Node{Manifest: m})
	e, ok := errors.AsType[*PlatformError](err)
	if !ok || e.Want != "linux/amd64" || !cmp.Equal(e.Have, []string{"linux/amd64/v3", "linux/arm64/v8"}) {
		t.Errorf("%v", err)
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		machine, image string
		want           bool
	}{
		{"amd64", "linux/amd64", true}, {"amd64", "linux/amd64/v1", true}, {"amd64", "linux/amd64/v3", false}, {"amd64", "linux/386", true},
		{"amd64", "linux/arm64", false}, {"amd64", "windows/amd64", false}, {"arm64", "linux/arm64", true}, {"arm64", "linux/arm64/v8", true},
		{"arm64", "linux/arm64/v9", false}, {"arm64", "linux/arm/v7", true}, {"arm", "linux/arm64", false},
	} {
		if got := Linux(c.machine).Runs(*entry(c.image).Platform); got != c.want {
			t.Errorf("%s on %s: %v", c.image, c.machine, got)
		}
	}
}
