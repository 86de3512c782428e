package memory

import (
	"bytes"
	"encoding/binary"
	"os"
)

// startSwap uses a file for swap as the kernel does: its first page says that it is an
// area (linux/swap.h), of which the file has no less.
func (h *Host) startSwap(u *unit, at int) string {
	n, err := h.follow(u.def.settings.last("Swap.What"), false)
	if err != nil || !swappable(n) {
		return h.failed(u, Outcome{Status: 255}, at) // swapon(8): failure
	}
	h.enter(u, "active")
	return "done"
}

func swappable(n *inode) bool {
	page := os.Getpagesize()
	if !n.mode.IsRegular() || len(n.content) < page || !bytes.HasSuffix(n.content[:page], []byte("SWAPSPACE2")) {
		return false
	}
	pages := int(binary.LittleEndian.Uint32(n.content[1028:])) + 1
	return pages > 1 && len(n.content) >= pages*page
}
