package artifact

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Sizes and marks of an RPM package, version 3 of its format: a lead, a header
// with signatures, a header, and what it installs.
//
// Source: rpm.org, "RPM V4 Package format".
const (
	rpmLeadSize    = 96
	rpmHeaderSize  = 16
	rpmEntrySize   = 16
	rpmMagic       = "\xed\xab\xee\xdb"
	rpmHeaderMagic = "\x8e\xad\xe8"
	// maxRPMHeader bounds a header, in bytes: that of a large package has a few MB.
	maxRPMHeader = 64 << 20
)

// isRPM says whether content is an RPM package.
func isRPM(in *bufio.Reader) bool {
	head, _ := in.Peek(len(rpmMagic)) // content that is shorter is none
	return string(head) == rpmMagic
}

// rpmPayload goes to what an RPM package installs: a cpio archive, compressed in
// some way.
func rpmPayload(in io.Reader) error {
	if _, err := io.CopyN(io.Discard, in, rpmLeadSize); err != nil {
		return fmt.Errorf("read RPM package: %w", err)
	}
	signatures, err := skipRPMHeader(in)
	if err == nil {
		_, err = io.CopyN(io.Discard, in, -signatures&7) // the next one begins at 8 bytes
	}
	if err == nil {
		_, err = skipRPMHeader(in)
	}
	if err != nil {
		return fmt.Errorf("read RPM package: %w", err)
	}
	return nil
}

// skipRPMHeader returns the header's size.
func skipRPMHeader(in io.Reader) (int64, error) {
	head := make([]byte, rpmHeaderSize)
	if _, err := io.ReadFull(in, head); err != nil {
		return 0, err
	}
	if string(head[:3]) != rpmHeaderMagic {
		return 0, errors.New("a header begins otherwise")
	}
	size := int64(binary.BigEndian.Uint32(head[8:]))*rpmEntrySize + int64(binary.BigEndian.Uint32(head[12:]))
	if size > maxRPMHeader {
		return 0, fmt.Errorf("a header of %d bytes", size)
	}
	_, err := io.CopyN(io.Discard, in, size)
	return size + rpmHeaderSize, err
}
