package oci

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// variants are those that every machine of an architecture runs, the best one
// first. "" is an entry that names none.
var variants = map[string][]string{
	"amd64": {"", "v1"},
	"arm64": {"", "v8"},
	"arm":   {"v7", "", "v6", "v5"},
}

// maxNames is how many names an error shows.
const maxNames = 20

// choose picks the entry of an index that is for this machine. An index whose
// single entry names no platform is for all.
func (c *Client) choose(index *manifest) (v1.Descriptor, error) {
	best, rank := v1.Descriptor{}, -1
	for _, m := range index.Manifests {
		if n := c.rank(m.Platform); n >= 0 && (rank < 0 || n < rank) {
			best, rank = m, n
		}
	}
	if rank >= 0 {
		return best, nil
	}
	if len(index.Manifests) == 1 && index.Manifests[0].Platform == nil {
		return index.Manifests[0], nil
	}
	return best, &PlatformError{Subject: index.subject, Want: "linux/" + c.arch(), Have: platforms(index)}
}

// rank is how well a platform fits, 0 best, -1 not at all.
func (c *Client) rank(p *v1.Platform) int {
	if p == nil || p.OS != "linux" || p.Architecture != c.arch() {
		return -1
	}
	if known, ok := variants[p.Architecture]; ok {
		return slices.Index(known, p.Variant)
	}
	return 0
}

func platforms(index *manifest) []string {
	var all []string
	for _, m := range index.Manifests {
		if m.Platform == nil || m.Platform.OS == "unknown" { // signatures and attestations
			continue
		}
		if name := platform(m.Platform); !slices.Contains(all, name) && len(all) < maxNames {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func platform(p *v1.Platform) string {
	name := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		name += "/" + p.Variant
	}
	return words(strings.TrimSpace(name), 60, nil)
}

// checkConfig compares the platform of an image that is in no index, which only
// its configuration tells.
func (c *Client) checkConfig(ctx context.Context, r Reference, d *manifest) error {
	s := Subject{r.Registry, r.Repository, "configuration " + d.Config.Digest.String()}
	if d.Config.Size > maxManifest {
		return &ManifestError{s, "it is larger than 4 MiB"}
	}
	in, _, err := c.Blob(ctx, r, layerOf(d.Config), 0)
	if err != nil {
		return err
	}
	defer in.Close()
	body, err := small(ctx, s, in)
	if err != nil {
		return err
	}
	if err := same(s, body, d.Config.Digest, "the manifest"); err != nil {
		return err
	}
	var p v1.Platform
	if err := json.Unmarshal(body, &p); err != nil {
		return &ManifestError{s, "it is no JSON: " + words(err.Error(), 200, nil)}
	}
	if p.Architecture != "" && c.rank(&p) < 0 {
		return &PlatformError{Subject: d.subject, Want: "linux/" + c.arch(), Have: []string{platform(&p)}}
	}
	return nil
}
