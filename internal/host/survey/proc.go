package survey

import (
	"encoding/hex"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Route is a way to a network.
type Route struct {
	Interface string
	// To is the network; that of no length is everywhere.
	To netip.Prefix
}

// Listener is a socket that listens. Inode is its name in /proc/PID/fd.
type Listener struct {
	Address netip.Addr
	Port    uint16
	Inode   uint64
}

// The flags of routes that lead nowhere from here: RTF_REJECT, and RTF_LOCAL of the
// machine's own addresses (linux/route.h, linux/ipv6_route.h).
const (
	flagUp     = 0x1
	flagReject = 0x200
	flagLocal  = 0x80000000
)

// routes4 reads /proc/net/route: interface, destination and mask in hex, the bytes in
// the machine's order.
func routes4(text string) []Route {
	var out []Route
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		flags, err := strconv.ParseUint(f[3], 16, 32)
		to, ok := address(f[1])
		mask, whole := address(f[7])
		if err != nil || !ok || !whole || !to.Is4() || !mask.Is4() || flags&flagUp == 0 || flags&flagReject != 0 {
			continue
		}
		if p, err := to.Prefix(ones(mask)); err == nil {
			out = append(out, Route{f[0], p})
		}
	}
	return out
}

// routes6 reads /proc/net/ipv6_route: destination and its length in hex, the bytes in
// the network's order; flags and interface are the last two words.
func routes6(text string) []Route {
	var out []Route
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		raw, err1 := hex.DecodeString(f[0])
		length, err2 := strconv.ParseUint(f[1], 16, 8)
		flags, err3 := strconv.ParseUint(f[8], 16, 32)
		to, ok := netip.AddrFromSlice(raw)
		if err1 != nil || err2 != nil || err3 != nil || !ok || !to.Is6() || flags&flagUp == 0 || flags&(flagReject|flagLocal) != 0 || f[9] == "lo" {
			continue
		}
		if p, err := to.Prefix(int(length)); err == nil {
			out = append(out, Route{f[9], p})
		}
	}
	return out
}

func ones(mask netip.Addr) int {
	n := 0
	for _, b := range mask.AsSlice() {
		n += bits.OnesCount8(b)
	}
	return n
}

// listening is a socket's state TCP_LISTEN.
const listening = "0A"

// listeners reads /proc/net/tcp or tcp6: "SL: ADDRESS:PORT REMOTE STATE … INODE".
func listeners(text string) []Listener {
	var out []Listener
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != listening {
			continue
		}
		host, port, _ := strings.Cut(f[1], ":")
		addr, ok := address(host)
		number, err1 := strconv.ParseUint(port, 16, 16)
		inode, err2 := strconv.ParseUint(f[9], 10, 64)
		if ok && err1 == nil && err2 == nil {
			out = append(out, Listener{addr.Unmap(), uint16(number), inode})
		}
	}
	return out
}

// address reads one as the kernel prints it on a little-endian machine: words of four
// bytes, each turned round.
func address(text string) (netip.Addr, bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.Addr{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	return netip.AddrFromSlice(raw)
}
