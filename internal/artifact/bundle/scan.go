package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// scan goes through the members of a file, one known header after the other.
type scan struct {
	r        io.ReaderAt
	size, at int64
}

// block is the header at the present position; nil where the file ends.
func (s *scan) block() ([]byte, error) {
	if s.size-s.at < blockSize {
		return nil, nil
	}
	b := make([]byte, blockSize)
	return b, s.readAt(b, s.at)
}

func (s *scan) readAt(p []byte, at int64) error {
	n, err := s.r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read bundle at byte %d: %w", at, err)
}

// first is the size of the first member, which must be the manifest.
func (s *scan) first() (int64, error) {
	block, err := s.block()
	if err != nil {
		return 0, err
	}
	switch {
	case s.size == 0:
		return 0, &NotBundleError{"the file is empty"}
	case block == nil:
		return 0, &NotBundleError{fmt.Sprintf("it has only %d bytes", s.size)}
	case nameOf(block) == ManifestName:
		return sizeOf(block), nil
	}
	return 0, &NotBundleError{kindOf(block)}
}

// kinds are files that people may take for bundles, by how they begin.
var kinds = []struct {
	at          int
	magic, name string
}{
	{0, "\x1f\x8b", "it is compressed with gzip"},
	{0, "\x28\xb5\x2f\xfd", "it is compressed with zstd"},
	{0, "\xfd7zXZ", "it is compressed with xz"},
	{0, "PK\x03\x04", "it is a zip archive"},
	{0, "\x7fELF", "it is a program"},
	{0, "-----BEGIN ", "it is a PEM file"},
	{0, "{", "it looks like JSON"},
}

func kindOf(block []byte) string {
	for _, k := range kinds {
		if bytes.HasPrefix(block[k.at:], []byte(k.magic)) {
			return k.name
		}
	}
	if string(block[257:262]) == "ustar" {
		return fmt.Sprintf("it is a tar whose first member is %q, want %s", nameOf(block), ManifestName)
	}
	return "it is no tar"
}

// read takes a small member and reads it.
func (s *scan) read(name string, size, limit int64) ([]byte, error) {
	if size < 0 || size > limit {
		return nil, s.damaged(name, fmt.Sprintf("it says to have %d bytes, more than %d", size, limit))
	}
	p, err := s.take(name, size)
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	return b, s.readAt(b, p.offset)
}

// take goes over the member at the present position, which must be of this name and
// size, with the one header that makes.
func (s *scan) take(name string, size int64) (extent, error) {
	block, err := s.block()
	if err != nil {
		return extent{}, err
	}
	if block == nil {
		return extent{}, s.damaged(name, "the file ends before it")
	}
	want, err := header(name, size)
	if err != nil {
		return extent{}, err
	}
	if !bytes.Equal(block, want) {
		return extent{}, s.damaged(name, different(block, name, size))
	}
	p := extent{s.at + blockSize, size}
	if left := s.size - p.offset; left < padded(size) {
		return extent{}, s.damaged(name, fmt.Sprintf("the file ends in it: %d of %d bytes are there", min(left, size), size))
	}
	if err := s.zeros(name, p.offset+size, padded(size)-size); err != nil {
		return extent{}, err
	}
	s.at = p.offset + padded(size)
	return p, nil
}

func (s *scan) damaged(member, reason string) error {
	return &DamagedError{Member: member, Offset: s.at, Reason: reason}
}

// zeros says that what fills a gap is empty.
func (s *scan) zeros(name string, at, n int64) error {
	fill := make([]byte, n)
	if err := s.readAt(fill, at); err != nil {
		return err
	}
	if !empty(fill) {
		return s.damaged(name, "something is hidden behind it")
	}
	return nil
}

func empty(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// finish says that the archive ends where the last member does.
func (s *scan) finish() error {
	block, err := s.block()
	switch {
	case err != nil:
		return err
	case block != nil && !empty(block):
		return s.damaged("end of the archive", fmt.Sprintf("%q is not in the manifest", nameOf(block)))
	case s.size-s.at < tail:
		return s.damaged("end of the archive", "the file ends before it")
	case s.size-s.at > tail:
		return s.damaged("end of the archive", fmt.Sprintf("%d bytes follow it", s.size-s.at-tail))
	}
	return s.zeros("end of the archive", s.at, tail)
}

// different says in what a header is not that of a name and size.
func different(block []byte, name string, size int64) string {
	switch {
	case empty(block):
		return "it is missing: the archive ends before it"
	case nameOf(block) != name:
		return fmt.Sprintf("in its place is %q", nameOf(block))
	case block[156] != '0':
		return fmt.Sprintf("it is no plain file (type %q)", block[156])
	case sizeOf(block) != size:
		return fmt.Sprintf("it says to have %d bytes, want %d", sizeOf(block), size)
	}
	return "its header is not as berth writes it"
}

// nameOf and sizeOf read a header for people: what counts is that the whole
// header is the wanted one.
func nameOf(block []byte) string {
	if block == nil {
		return ""
	}
	name, _, _ := bytes.Cut(block[:100], []byte{0})
	return string(name)
}

func sizeOf(block []byte) int64 {
	text := bytes.Trim(block[124:136], " \x00")
	n, err := strconv.ParseInt(string(text), 8, 64)
	if err != nil {
		return -1
	}
	return n
}
