package artifact

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/readahead"
	"github.com/ulikunitz/xz"

	"github.com/berth-dev/berth/internal/artifact/inflate"
	"github.com/berth-dev/berth/internal/desired"
)

// unpack stages the artifact's files out of its content.
func (f *Fetcher) unpack(ctx context.Context, in io.Reader, files *staging, a *desired.Artifact, s *source) error {
	if len(a.Files) == 1 && a.Files[0].Member == "" {
		return files.put(a.Files[0], in)
	}
	plain, done, err := f.plain(ctx, in, s)
	if err != nil {
		return &UnpackError{URL: s.shown(), Err: err}
	}
	defer done()
	w := &wanted{files: files, open: members(a), bound: &io.LimitedReader{R: plain, N: f.opt.MaxUnpacked}, room: f.opt.MaxUnpacked}
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

func members(a *desired.Artifact) map[string][]desired.ArtifactFile {
	all := map[string][]desired.ArtifactFile{}
	for _, f := range a.Files {
		name := member(f.Member)
		all[name] = append(all[name], f)
	}
	return all
}

// member is the form in which names in archives compare.
func member(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// plain is the archive in content: a package's is in a member of it.
func (f *Fetcher) plain(ctx context.Context, in io.Reader, s *source) (archive io.Reader, done func(), err error) {
	b := bufio.NewReaderSize(in, aheadSize)
	switch {
	case isDeb(b):
		data, err := debData(b)
		if err != nil {
			return nil, nil, err
		}
		b = bufio.NewReaderSize(data, aheadSize)
	case isRPM(b):
		if err := rpmPayload(b); err != nil {
			return nil, nil, err
		}
	}
	if isXZ(b) {
		return unxz(b, s)
	}
	return f.inflate(ctx, b)
}

// isXZ says whether content is compressed with xz, as distributions do.
func isXZ(in *bufio.Reader) bool {
	head, _ := in.Peek(6)
	return string(head) == "\xfd7zXZ\x00"
}

// unxz decompresses ahead of its reader. A stream of xz says how much memory it
// takes, up to 4 GiB: for more than packages take, somebody has to vouch before.
func unxz(in *bufio.Reader, s *source) (archive io.Reader, done func(), err error) {
	if s.digest == "" && s.url.Scheme != "file" && !modestXZ(in) {
		return nil, nil, errors.New("compressed with xz and a dictionary of more than 64 MiB, which is taken from a file of the machine or with a digest only")
	}
	z, err := xz.NewReader(in)
	if err != nil {
		return nil, nil, err
	}
	ahead, err := readahead.NewReaderSize(z, aheadBuffers, aheadSize)
	if err != nil {
		return nil, nil, err
	}
	return ahead, func() { _ = ahead.Close() }, nil
}

// inflate decompresses what is compressed, ahead of its reader, until done is
// called.
func (f *Fetcher) inflate(ctx context.Context, in io.Reader) (plain io.Reader, done func(), err error) {
	z, err := inflate.New(ctx, in, aheadSize, f.takeWindow)
	if err != nil {
		return nil, nil, err
	}
	if !z.Packed {
		return z, z.Close, nil
	}
	ahead, err := readahead.NewReaderSize(z, aheadBuffers, aheadSize)
	if err != nil {
		z.Close()
		return nil, nil, err
	}
	return ahead, func() { _ = ahead.Close(); z.Close() }, nil
}

// takeWindow waits for the leave to run a zstd decoder.
func (f *Fetcher) takeWindow(ctx context.Context) (release func(), err error) {
	select {
	case f.window <- struct{}{}:
		return func() { <-f.window }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// maxNames is how many names of an archive an error shows.
const maxNames = 20

// wanted takes the wanted members out of an archive of tar or cpio.
type wanted struct {
	files *staging
	open  map[string][]desired.ArtifactFile
	have  []string
	bound *io.LimitedReader
	// room is how much the files themselves may still take: those with holes are
	// larger than what stands in the archive.
	room int64
}

var errUnpacksTooMuch = errors.New("it unpacks to more than the bound")

// read goes through the archive until nothing is wanted any more. What comes
// after that is not looked at: a second member of the same name is not seen.
func (w *wanted) read() error {
	var entries interface {
		Next() (*tar.Header, error)
		io.Reader
	}
	b := bufio.NewReader(w.bound)
	if entries = tar.NewReader(b); isCPIO(b) {
		entries = &cpioReader{in: b}
	}
	for len(w.open) > 0 {
		header, err := entries.Next()
		if w.bound.N == 0 {
			return errUnpacksTooMuch
		}
		if err == io.EOF { //nolint:errorlint // a source that broke off may wrap it
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if err := w.take(header, entries); err != nil {
			if w.bound.N == 0 && !local(err) {
				return errUnpacksTooMuch
			}
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
	files, ok := w.open[name]
	if !ok {
		return nil
	}
	if header.Typeflag != tar.TypeReg {
		return fmt.Errorf("%s is not a regular file (type %q)", name, header.Typeflag)
	}
	if header.Size > w.room/int64(len(files)) {
		return errUnpacksTooMuch
	}
	w.room -= header.Size * int64(len(files))
	if err := w.files.putAll(files, content); err != nil {
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
