package oci

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/inflate"
)

// Image is the layers of an image, out of which files are taken.
type Image struct {
	// Layers are as in the manifest, the lowest one first.
	Layers []v1.Descriptor
	// Open gives the bytes of a layer as the registry has them. It may be called
	// twice for a layer: see Extract.
	Open func(context.Context, v1.Descriptor) (io.ReadCloser, error)
	// Window is asked before a layer in zstd is read, whose decoder remembers up to
	// inflate.MaxWindow bytes; nil does not limit.
	Window inflate.Window
	// MaxBytes bounds what the layers that are read unpack to, together, and in the
	// same way what is put; 0 is 8 GiB.
	MaxBytes int64
	// maxEntries bounds their files, and the names that these imply; 0 is a million.
	maxEntries int
}

// Put takes a file out of an image: paths are those of the wanted ones that lead
// to it, header is the tar archive's, of a regular file. It need not read all.
type Put func(paths []string, header *tar.Header, content io.Reader) error

// Extract takes the wanted files out of an image, as a container made of it
// would see them: later layers win, whiteouts hide, symbolic links are followed
// inside the image, at most 40 for a file.
//
// Layers are read from the top one down, each to its end, until all is found;
// files are put while their layer is read the first time. A layer is read a
// second time only for a file that lies in it before the link that leads there,
// or above it. Memory is for the names of all files in the layers read (some
// 20 bytes each) and the links among them.
//
// A layer's digest is compared when its last byte has come. What put took is to
// be trusted only when Extract returned nil.
//
// Errors: *MissingError, *ContentError (hostile or malformed), *DigestError,
// *SizeError; those of Open, of the readers it gave, of Window and of put as they are.
func (im *Image) Extract(ctx context.Context, wanted []string, put Put) error {
	x := &extraction{image: im, ctx: ctx, put: put, view: newView(im.Layers, room{cmp.Or(im.maxEntries, maxEntries), maxLinkBytes})}
	if err := im.check(); err != nil {
		return err
	}
	for _, text := range wanted {
		if err := x.want(text); err != nil {
			return err
		}
	}
	x.refill()
	x.given = x.bytes
	if err := x.search(); err != nil {
		return err
	}
	x.refill()
	return x.fetchRest()
}

// check refuses layers that can't be read.
func (im *Image) check() error {
	for _, l := range im.Layers {
		err := l.Digest.Validate()
		if err == nil && strings.HasSuffix(l.MediaType, "+encrypted") {
			err = errors.New("it is encrypted")
		}
		if err != nil {
			return &ContentError{Layer: Words(l.Digest.String(), 100), Err: err}
		}
	}
	return nil
}

// extraction is the state of one Extract.
type extraction struct {
	image   *Image
	ctx     context.Context
	put     Put
	view    *view
	targets []*target
	// entries and bytes are what is left of the bounds, given what may still be
	// put.
	entries      int
	bytes, given int64
	similar      []string
}

// target is a wanted file.
type target struct {
	// path is clean, without a leading slash; names are how it was asked for.
	path  string
	names []string
	// now is what is known of it.
	now lookup
	// put says where the file came from that was put.
	put *location
}

func (x *extraction) refill() {
	x.entries, x.bytes = cmp.Or(x.image.maxEntries, maxEntries), cmp.Or(x.image.MaxBytes, 8<<30)
}

func (x *extraction) want(text string) error {
	path, err := cleanName(text)
	if err == nil && (path == "" || strings.Contains("/"+path, "/"+whiteout)) {
		err = errors.New("it is not the path of a file")
	}
	if err != nil {
		return &ContentError{Path: text, Err: err}
	}
	for _, g := range x.targets {
		if g.path == path {
			if !slices.Contains(g.names, text) {
				g.names = append(g.names, text)
			}
			return nil
		}
	}
	x.targets = append(x.targets, &target{path: path, names: []string{text}})
	return nil
}

// search reads layers from the top down until it is known where all targets lie.
func (x *extraction) search() error {
	for {
		open, err := x.locate()
		if err != nil || len(open) == 0 {
			return err
		}
		n := x.view.next()
		pass := &pass{x: x, layer: n, first: true, wanted: map[string][]*target{}}
		for _, g := range open {
			if g.now.guess != "" {
				pass.wanted[g.now.guess] = append(pass.wanted[g.now.guess], g)
			}
		}
		x.view.add(n)
		if err := pass.run(); err != nil {
			return err
		}
	}
}

// locate finds out what is known of the targets, and returns those for which
// another layer must be read.
func (x *extraction) locate() ([]*target, error) {
	var open []*target
	missing := &MissingError{}
	for _, g := range x.targets {
		now, err := x.view.find(g.path)
		if err != nil {
			return nil, &ContentError{Path: g.path, Err: err}
		}
		g.now = now
		switch {
		case g.put != nil && (now.state != found || now.location != *g.put):
			return nil, &ContentError{Layer: x.digest(g.put.layer), Path: g.path, Err: errors.New("the layer contradicts itself about this path")}
		case now.state == unknown:
			open = append(open, g)
		case now.state == absent:
			missing.Paths = append(missing.Paths, x.describe(g))
		}
	}
	if len(missing.Paths) > 0 {
		missing.Have = x.similar
		return nil, missing
	}
	return open, nil
}

func (x *extraction) describe(g *target) string {
	if g.now.path != g.path {
		return fmt.Sprintf("%s (it leads to %s)", g.path, g.now.path)
	}
	return g.path
}

// fetchRest reads those layers again in which files lie that were not known to
// be wanted when they came by.
func (x *extraction) fetchRest() error {
	for n := len(x.image.Layers) - 1; n >= 0; n-- {
		again := &pass{x: x, layer: n, wanted: map[string][]*target{}}
		for _, g := range x.targets {
			if g.put == nil && g.now.layer == n {
				again.wanted[g.now.path] = append(again.wanted[g.now.path], g)
			}
		}
		if len(again.wanted) == 0 {
			continue
		}
		if err := again.run(); err != nil {
			return err
		}
		for path := range again.wanted {
			if !again.done[path] {
				return &ContentError{Layer: x.digest(n), Path: path, Err: errors.New("it is not there when the layer is read again")}
			}
		}
	}
	return nil
}

func (x *extraction) digest(layer int) string { return x.image.Layers[layer].Digest.String() }

// remember keeps names that may be meant by a wanted one.
func (x *extraction) remember(name string) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	for _, g := range x.targets {
		if g.path[strings.LastIndexByte(g.path, '/')+1:] == base && g.path != name && len(x.similar) < maxNames && !slices.Contains(x.similar, name) {
			x.similar = append(x.similar, name)
		}
	}
}
