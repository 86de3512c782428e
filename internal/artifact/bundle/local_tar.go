package bundle

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// archive is a tar as a tree of files.
type archive struct {
	r     io.ReaderAt
	files map[string]extent
	// links lead to other names.
	links map[string]string
}

// maxMembers bounds how many members of a foreign archive are remembered.
const maxMembers = 1 << 20

// Archive is a tar as a tree of files, read where they lie. What it holds twice
// counts as it does for tar: the last one wins.
func Archive(r io.ReaderAt, size int64) (fs.FS, error) {
	a := &archive{r: r, files: map[string]extent{}, links: map[string]string{}}
	s := io.NewSectionReader(r, 0, size)
	t := tar.NewReader(s)
	for range maxMembers {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, a.unreadable(err)
		}
		if err := a.add(h, s); err != nil {
			return nil, err
		}
	}
	return nil, &LocalError{fmt.Sprintf("it has more than %d members", maxMembers)}
}

// unreadable says what the file is instead of a tar.
func (a *archive) unreadable(err error) error {
	block := make([]byte, blockSize)
	if n, _ := a.r.ReadAt(block, 0); n > 0 && len(a.files) == 0 {
		if kind := kindOf(block); !strings.Contains(kind, "tar") {
			return &LocalError{"it is no tar: " + kind + "; a compressed archive must be decompressed first"}
		}
	}
	return &LocalError{fmt.Sprintf("it is no tar that can be read: %v", err)}
}

// add remembers a member. The reader stands where its content begins, since a
// tar.Reader reads no further than a header.
func (a *archive) add(h *tar.Header, s *io.SectionReader) error {
	name := path.Clean(h.Name)
	switch h.Typeflag {
	case tar.TypeReg:
		at, err := s.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		delete(a.links, name)
		a.files[name] = extent{at, h.Size}
	case tar.TypeSymlink:
		a.links[name] = path.Join(path.Dir(name), h.Linkname)
	case tar.TypeLink:
		a.links[name] = path.Clean(h.Linkname)
	}
	return nil
}

// Open implements fs.FS.
func (a *archive) Open(name string) (fs.File, error) {
	at := name
	for range 8 { // no archive of images has longer chains
		to, ok := a.links[at]
		if !ok {
			break
		}
		at = to
	}
	p, ok := a.files[at]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &archived{io.NewSectionReader(a.r, p.offset, p.size), path.Base(name)}, nil
}

// archived is a file of an archive, and its own description.
type archived struct {
	*io.SectionReader
	name string
}

func (f *archived) Stat() (fs.FileInfo, error) { return f, nil }
func (f *archived) Close() error               { return nil }
func (f *archived) Name() string               { return f.name }
func (f *archived) Mode() fs.FileMode          { return 0o444 }
func (f *archived) ModTime() time.Time         { return time.Time{} }
func (f *archived) IsDir() bool                { return false }
func (f *archived) Sys() any                   { return nil }
