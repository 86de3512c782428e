package builder

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
	"github.com/berth-dev/berth/internal/oci"
)

// spec is what a request asks for.
func (b *builder) spec(r Request) (bundle.Spec, error) {
	s := bundle.Spec{Platform: r.Platform}
	wanted, err := WantedBy(r.Document, r.Platform)
	if err != nil {
		return s, err
	}
	given := map[string]artifactFlag{}
	for _, text := range r.Artifacts {
		a, err := parseArtifact(text)
		if err != nil {
			return s, err
		}
		if _, ok := wanted.named(a.name); ok {
			given[a.name] = a
			continue
		}
		s.Artifacts = append(s.Artifacts, b.artifact(a))
	}
	for _, a := range wanted.Artifacts {
		one, ok := b.document(a, given)
		if !ok {
			b.Say("left out: " + leftOut(a))
			continue
		}
		s.Artifacts = append(s.Artifacts, one)
	}
	if s.Images, err = b.images(r.Images, wanted.Images, r.Platform); err == nil {
		b.sayDriver(r, s.Images)
	}
	return s, err
}

// sayDriver names the image of the GPUs' driver where the machines take one and the bundle
// has none: which one it is only their own image says.
func (b *builder) sayDriver(r Request, images []bundle.ImageSpec) {
	if r.Document == nil {
		return
	}
	refs := contract.ReferencesOf(r.Document)
	has := slices.ContainsFunc(images, func(i bundle.ImageSpec) bool { return strings.HasPrefix(i.Reference, refs.Driver+":") })
	if refs.Driver == "" || refs.DriverPlatform != r.Platform || has {
		return
	}
	b.Say("left out: the driver of GPUs: " + strings.Join(refs.Files, ", ") + " of the machine's image says which version it takes, so that the machine " +
		"must reach a registry with it; with --image " + refs.Driver + ":VERSION it is in the bundle")
}

// leftOut says why an artifact of the document is not in the bundle, and where it has to
// come from then.
func leftOut(a *desired.Artifact) string {
	if a.Image == "" {
		return a.Name + ": the document gives no URL for it, so that it must be in the machine's image"
	}
	var paths []string
	for _, f := range a.Files {
		paths = append(paths, f.Path)
	}
	return strings.Join(paths, ", ") + ": a bundle holds no files out of images, so that the machine must reach a registry with " + a.Image
}

// document is an artifact of the document, from its URLs or from what the flags
// give in their stead.
func (b *builder) document(a *desired.Artifact, given map[string]artifactFlag) (bundle.ArtifactSpec, bool) {
	one := bundle.ArtifactSpec{Name: a.Name, Version: a.Version, SHA256: a.SHA256}
	for _, u := range a.URLs {
		if !strings.HasPrefix(u, "file:") {
			one.URLs = append(one.URLs, u)
		}
	}
	if g, ok := given[a.Name]; ok {
		own := b.artifact(g)
		one.Content, one.Version = own.Content, cmp.Or(g.version, a.Version)
		if g.sha256 != "" {
			one.SHA256, one.Source = g.sha256, own.Source
		}
		return one, true
	}
	if len(a.URLs) == 0 {
		return one, false
	}
	one.Content = b.download(*a)
	return one, true
}

// artifactFlag is one of Request.Artifacts.
type artifactFlag struct {
	name, version string
	// source is a URL with its fragment, or the path of a file; sha256 is in hex.
	source, sha256 string
}

var namedArtifact = lazyregexp.New(`^([A-Za-z0-9][A-Za-z0-9._+~-]*)(?:@([A-Za-z0-9._+~-]+))?=(.+)$`)

// parseArtifact reads [NAME[@VERSION]=]SOURCE[#sha256=HEX].
func parseArtifact(text string) (artifactFlag, error) {
	a := artifactFlag{source: text}
	if m := namedArtifact().FindStringSubmatch(text); m != nil {
		a = artifactFlag{name: m[1], version: strings.TrimPrefix(m[2], "v"), source: m[3]}
	}
	shown := desired.BareURL(a.source)
	source, fragment, _ := strings.Cut(a.source, "#")
	if fragment != "" {
		hex, ok := strings.CutPrefix(strings.ToLower(fragment), "sha256=")
		if !ok {
			return a, fmt.Errorf("--artifact %s: after # comes sha256=HEX", shown)
		}
		a.sha256 = hex
	}
	if !strings.Contains(source, "://") {
		a.source = source
		a.name = cmp.Or(a.name, path.Base(source))
		return a, nil
	}
	u, err := url.Parse(source)
	if err != nil || !slices.Contains([]string{"https", "http", "oci"}, u.Scheme) || u.Host == "" {
		return a, fmt.Errorf("--artifact %s: want an https, http or oci URL, or the path of a file", shown)
	}
	if u.Scheme == "oci" {
		if _, err := oci.Parse(source); err != nil {
			return a, fmt.Errorf("--artifact %w", err)
		}
	}
	if a.name == "" {
		a.name = path.Base("/" + u.Path)
		if i := strings.IndexAny(a.name, ":@"); i > 0 && u.Scheme == "oci" { // tag and digest are none of the name
			a.name = a.name[:i]
		}
	}
	if a.name == "/" {
		return a, fmt.Errorf("--artifact %s: it has no name; give it one: NAME=%s", shown, shown)
	}
	return a, nil
}

func (a *artifactFlag) remote() bool { return strings.Contains(a.source, "://") }

// artifact is what --artifact asks for by itself.
func (b *builder) artifact(a artifactFlag) bundle.ArtifactSpec {
	one := bundle.ArtifactSpec{Name: a.name, Version: a.version, SHA256: a.sha256, Source: "the command line"}
	if a.remote() {
		one.URLs = []string{a.source}
		one.Content = b.download(desired.Artifact{Name: a.name, URLs: one.URLs, Version: a.version})
		return one
	}
	one.Content = bundle.Content{Local: true, Open: func(context.Context) (io.ReadCloser, error) {
		f, _, err := bundle.OpenRegular(a.source)
		return f, err
	}}
	return one
}
