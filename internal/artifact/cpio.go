package artifact

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
)

// Sizes and marks of cpio's newc format (cpio(5)): a header in hex digits, the
// name, the content, the latter two filled up to 4 bytes.
const (
	cpioMagic      = "07070"
	cpioHeaderSize = 110
	cpioEnd        = "TRAILER!!!"
	maxCPIOName    = 4096
	cpioTypeMask   = 0o170000
	cpioRegular    = 0o100000
)

// isCPIO says whether content is a cpio archive.
func isCPIO(in *bufio.Reader) bool {
	head, _ := in.Peek(len(cpioMagic)) // content that is shorter is none
	return string(head) == cpioMagic
}

// cpioReader reads a cpio archive as tar.Reader reads a tar archive.
type cpioReader struct {
	in io.Reader
	// left is what the present entry has left, fill what follows it.
	left, fill int64
}

// Next goes to the next entry; at the end its error is io.EOF.
func (c *cpioReader) Next() (*tar.Header, error) {
	if _, err := io.CopyN(io.Discard, c.in, c.left+c.fill); err != nil {
		return nil, err
	}
	head := make([]byte, cpioHeaderSize)
	if _, err := io.ReadFull(c.in, head); err != nil {
		return nil, unended(err)
	}
	if m := string(head[:6]); m != cpioMagic+"1" && m != cpioMagic+"2" {
		return nil, fmt.Errorf("%q is no cpio archive of the format newc", m)
	}
	mode, err := cpioNumber(head, 1)
	size, serr := cpioNumber(head, 6)
	length, lerr := cpioNumber(head, 11)
	if err != nil || serr != nil || lerr != nil || length == 0 || length > maxCPIOName {
		return nil, fmt.Errorf("%q is no header of a cpio archive", head)
	}
	name := make([]byte, length+padding(cpioHeaderSize+length))
	if _, err := io.ReadFull(c.in, name); err != nil {
		return nil, unended(err)
	}
	h := &tar.Header{Name: string(name[:length-1]), Size: size, Typeflag: tar.TypeReg, Mode: mode & int64(fs.ModePerm)}
	if h.Name == cpioEnd {
		return nil, io.EOF
	}
	if mode&cpioTypeMask != cpioRegular {
		h.Typeflag = tar.TypeSymlink // or something else that is no file
	}
	c.left, c.fill = size, padding(size)
	return h, nil
}

// Read reads the present entry.
func (c *cpioReader) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.in.Read(p[:min(int64(len(p)), c.left)])
	if c.left -= int64(n); errors.Is(err, io.EOF) && c.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// cpioNumber is a field of a header, which are counted from the magic on.
func cpioNumber(head []byte, field int) (int64, error) {
	at := 6 + (field)*8
	n, err := strconv.ParseUint(string(head[at:at+8]), 16, 32)
	return int64(n), err
}

func padding(n int64) int64 { return -n & 3 }

// unended: an archive ends with an entry that says so.
func unended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
