package swap

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// The first page of a swap area (linux/swap.h, union swap_header): numbers are in the
// machine's byte order, all of whose Linux nodes are little-endian.
const (
	versionAt  = 1024
	lastPageAt = 1028
	uuidAt     = 1036
	labelAt    = 1052
	labelSize  = 16
	version    = 1
	magic      = "SWAPSPACE2"
	// label is what berth calls the areas that it makes.
	label = "berth"
)

// header is the first page of an area; pages of the kernel have the given size.
func header(path string, size int64, page int) []byte {
	b := make([]byte, page)
	binary.LittleEndian.PutUint32(b[versionAt:], version)
	binary.LittleEndian.PutUint32(b[lastPageAt:], uint32(size/int64(page)-1))
	uuid := sha256.Sum256([]byte(path))
	uuid[6], uuid[8] = uuid[6]&0x0f|0x80, uuid[8]&0x3f|0x80 // RFC 9562, version 8
	copy(b[uuidAt:labelAt], uuid[:])
	copy(b[labelAt:], label)
	copy(b[page-len(magic):], magic)
	return b
}

// area is what a first page says.
type area struct {
	// pages are those of the area, the first one included.
	pages int64
	// ours: berth made it.
	ours bool
}

// readHeader reads a first page; ok is false where it is not that of a swap area.
func readHeader(b []byte, page int) (a area, ok bool) {
	if len(b) != page || !bytes.HasSuffix(b, []byte(magic)) || binary.LittleEndian.Uint32(b[versionAt:]) != version {
		return area{}, false
	}
	name, _, _ := bytes.Cut(b[labelAt:labelAt+labelSize], []byte{0})
	return area{pages: int64(binary.LittleEndian.Uint32(b[lastPageAt:])) + 1, ours: string(name) == label}, true
}
