package memory

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
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

// swapsTo says whether a file is in use for swap: then none of its names changes, and
// none is taken away (Linux 6.1, may_delete in fs/namei.c).
func (h *Host) swapsTo(n *inode) bool {
	for name, u := range h.systemd.units {
		if n == nil || path.Ext(name) != ".swap" || u.active != "active" || u.def == nil {
			continue
		}
		if used, err := h.follow(u.def.settings.last("Swap.What"), false); err == nil && used == n {
			return true
		}
	}
	return false
}

func swappable(n *inode) bool {
	page := os.Getpagesize()
	if !n.mode.IsRegular() || len(n.content) < page || !bytes.HasSuffix(n.content[:page], []byte("SWAPSPACE2")) {
		return false
	}
	pages := int(binary.LittleEndian.Uint32(n.content[1028:])) + 1
	return pages > 1 && len(n.content) >= pages*page
}
