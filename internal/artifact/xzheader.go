package artifact

import (
	"bufio"
	"encoding/binary"
)

// Of the format of xz (The .xz File Format 1.2.1): a header of the stream, then
// one of the first block: its size, flags, sizes of the block if it has them, filters.
const (
	xzStreamHeader = 12
	xzFlagFilters  = 0x03 // how many filters there are, less one
	xzLZMA2        = 0x21
	// xzModest is the size of LZMA2's dictionary as its filter says it: 64 MiB, that of
	// xz -9. dpkg-deb and rpmbuild take less.
	xzModest = 28
	// xzLongest is what of a block's header can stand before the end of its one filter.
	xzLongest = 2 + 2*9 + 3
)

// modestXZ says whether the first block of a stream takes no more memory than xz
// needs at its highest level. One with other filters than LZMA2 alone does not count.
func modestXZ(in *bufio.Reader) bool {
	head, _ := in.Peek(xzStreamHeader + xzLongest)
	if len(head) < xzStreamHeader+2 {
		return false
	}
	flags, rest := head[xzStreamHeader+1], head[xzStreamHeader+2:]
	for _, present := range []byte{0x40, 0x80} { // compressed and uncompressed size
		if flags&present == 0 {
			continue
		}
		_, n := binary.Uvarint(rest) // xz's numbers of many bytes are of that form
		if n <= 0 {
			return false
		}
		rest = rest[n:]
	}
	return flags&xzFlagFilters == 0 && len(rest) >= 3 && rest[0] == xzLZMA2 && rest[1] == 1 && rest[2] <= xzModest
}
