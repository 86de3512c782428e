package artifact

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/readahead"

	"github.com/berth-dev/berth/internal/desired"
)

// unpack stages the artifact's files out of its content.
func (f *Fetcher) unpack(in io.Reader, files *staging, a *desired.Artifact, s *source) error {
	if len(a.Files) == 1 && a.Files[0].Member == "" {
		return files.put(a.Files[0], in)
	}
	plain, done, err := f.inflate(in)
	if err != nil {
		return &UnpackError{URL: s.shown(), Err: err}
	}
	defer done()
	w := &wanted{files: files, open: members(a), bound: &io.LimitedReader{R: plain, N: f.opt.MaxUnpacked}}
	err = w.read()
	if err == nil && s.digest == "" {
		// Nothing but the archive's own checksum vouches for the rest.
		_, err = io.Copy(io.Discard, w.bound)
	}
	if err == nil && len(w.open) > 0 {
		return &UnpackError{URL: s.shown(), Missing: w.missing(), Have: w.have}
	}
	if err != nil && !local(err) {
		return &UnpackError{URL: s.shown(), Err: err}
	}
	return err
}

func members(a *desired.Artifact) map[string]desired.ArtifactFile {
	all := map[string]desired.ArtifactFile{}
	for _, f := range a.Files {
		all[member(f.Member)] = f
	}
	return all
}

// member is the form in which names in archives compare.
func member(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// inflate finds out by the first bytes how the archive is compressed. What it
// gives is decompressed ahead of its reader, until done is called.
func (f *Fetcher) inflate(in io.Reader) (plain io.Reader, done func(), err error) {
	b := bufio.NewReaderSize(in, aheadSize)
	magic, err := b.Peek(4)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, nil, err
		}
		return runAhead(z, func() {})
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return f.inflateZstd(b)
	}
	return b, func() {}, nil
}

// maxWindow bounds what a zstd stream may make the decoder remember; only one
// such decoder runs at a time. 32 MiB is twice what zstd -19 takes.
const maxWindow = 32 << 20

func (f *Fetcher) inflateZstd(in io.Reader) (plain io.Reader, done func(), err error) {
	f.window <- struct{}{}
	free := func() { <-f.window }
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		free()
		return nil, nil, err
	}
	return runAhead(z, func() { z.Close(); free() })
}

// runAhead reads in a goroutine of its own; done ends it, then calls then.
func runAhead(r io.Reader, then func()) (plain io.Reader, done func(), err error) {
	ahead, err := readahead.NewReaderSize(r, aheadBuffers, aheadSize)
	if err != nil {
		then()
		return nil, nil, err
	}
	return ahead, func() { _ = ahead.Close(); then() }, nil
}

// maxNames is how many names of an archive an error shows.
const maxNames = 20

// wanted takes the wanted members out of a tar archive.
type wanted struct {
	files *staging
	open  map[string]desired.ArtifactFile
	have  []string
	bound *io.LimitedReader
}

// read goes through the archive until nothing is wanted any more. What comes
// after that is not looked at: a second member of the same name is not seen.
func (w *wanted) read() error {
	t := tar.NewReader(w.bound)
	for len(w.open) > 0 {
		header, err := t.Next()
		if w.bound.N == 0 {
			return errors.New("it unpacks to more than the bound")
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read tar archive: %w", err)
		}
		if err := w.take(header, t); err != nil {
			return err
		}
	}
	return nil
}

func (w *wanted) take(header *tar.Header, content io.Reader) error {
	name := member(header.Name)
	if len(w.have) < maxNames {
		w.have = append(w.have, name)
	}
	f, ok := w.open[name]
	if !ok {
		return nil
	}
	if header.Typeflag != tar.TypeReg {
		return fmt.Errorf("%s is not a regular file (type %q)", name, header.Typeflag)
	}
	if err := w.files.put(f, content); err != nil {
		return err
	}
	delete(w.open, name)
	return nil
}

func (w *wanted) missing() []string {
	var all []string
	for name := range w.open {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
