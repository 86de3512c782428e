package oci

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/berth-dev/berth/internal/artifact/inflate"
)

// ErrBounds is under the *ContentError of an image that is larger than it may be.
var ErrBounds = errors.New("larger than the bounds for an image")

// pass is one reading of one layer.
type pass struct {
	x     *extraction
	layer int
	// first says that names are taken into the index.
	first  bool
	wanted map[string][]*target
	done   map[string]bool
}

// run reads the layer to its end. What was wrong with the bytes explains what
// was wrong with what they seemed to hold.
func (p *pass) run() error {
	l := p.x.image.Layers[p.layer]
	p.done = map[string]bool{}
	body, err := p.x.image.Open(p.x.ctx, l)
	if err != nil {
		return err
	}
	defer body.Close()
	in := &proven{ctx: p.x.ctx, in: body, layer: l, sum: l.Digest.Algorithm().Hash()}
	err = p.unpack(in)
	if own := (*callerError)(nil); errors.As(err, &own) {
		return own.err
	}
	if in.err == nil {
		_, _ = io.Copy(io.Discard, in) // its error is in.err
	}
	if in.err != nil {
		return in.err
	}
	if e, ok := errors.AsType[*ContentError](err); ok {
		return e
	}
	if err != nil {
		return &ContentError{Layer: l.Digest.String(), Err: err}
	}
	p.finalize()
	return nil
}

// finalize notes what was put.
func (p *pass) finalize() {
	for path := range p.done {
		for _, g := range p.wanted[path] {
			g.put = &location{p.layer, path}
		}
	}
}

func (p *pass) unpack(in io.Reader) error {
	plain, err := inflate.New(p.x.ctx, in, layerBuffer, p.window())
	if err != nil {
		return err
	}
	defer plain.Close()
	bounded := &bounded{plain, &p.x.bytes}
	archive := tar.NewReader(bounded)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, bounded)
			return err
		}
		if err != nil {
			return fmt.Errorf("read tar archive: %w", err)
		}
		if err := p.entry(header, archive); err != nil {
			return err
		}
	}
}

// layerBuffer is how much of a layer is read at once, in bytes.
const layerBuffer = 128 << 10

// window is the image's, with errors that are told from those of the layer.
func (p *pass) window() inflate.Window {
	if p.x.image.Window == nil {
		return nil
	}
	return func(ctx context.Context) (func(), error) {
		release, err := p.x.image.Window(ctx)
		if err != nil {
			return nil, &callerError{err}
		}
		return release, nil
	}
}

// entry looks at one member of the archive.
func (p *pass) entry(h *tar.Header, content io.Reader) error {
	if p.x.entries--; p.x.entries < 0 {
		return fmt.Errorf("%w: too many files", ErrBounds)
	}
	name, err := p.name(h)
	if err != nil {
		return &ContentError{Layer: p.x.digest(p.layer), Path: Words(h.Name, 200), Err: err}
	}
	targets := p.wanted[name]
	if len(targets) == 0 {
		return nil
	}
	if p.done[name] {
		return &ContentError{Layer: p.x.digest(p.layer), Path: name, Err: errors.New("it is in the layer twice")}
	}
	if kindOf(h.Typeflag) != kindFile {
		return nil
	}
	p.done[name] = true
	return p.hand(targets, h, content)
}

func (p *pass) name(h *tar.Header) (string, error) {
	if !p.first {
		return cleanName(h.Name)
	}
	name, err := p.x.view.read[p.layer].add(h)
	if err == nil && kindOf(h.Typeflag) != kindDir {
		p.x.remember(name)
	}
	return name, err
}

// hand gives a file to put.
func (p *pass) hand(targets []*target, h *tar.Header, content io.Reader) error {
	// The holes of sparse files are not in the layer, so that nothing else counts
	// them.
	if p.x.given -= h.Size; p.x.given < 0 {
		return &ContentError{Layer: p.x.digest(p.layer), Path: targets[0].path, Err: ErrBounds}
	}
	var paths []string
	for _, g := range targets {
		paths = append(paths, g.names...)
	}
	watched := &watched{in: content}
	err := p.x.put(paths, h, watched)
	if watched.err != nil {
		return watched.err
	}
	if err != nil {
		return &callerError{err}
	}
	return nil
}

// callerError tells the errors of what the caller gave, such as put, from those of
// the layer.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// watched keeps the error that the reader of a file met.
type watched struct {
	in  io.Reader
	err error
}

// Read implements io.Reader.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.in.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}
