package dns

import (
	"bufio"
	"bytes"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// Hosts looks names up in a file in the form of /etc/hosts and reads it again
// when it changed.
type Hosts struct {
	Path string

	mu    sync.Mutex
	mtime time.Time
	size  int64
	names map[string][]netip.Addr
}

// Lookup implements the function type of the same name.
func (h *Hosts) Lookup(name string) ([]netip.Addr, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refresh()
	addrs, ok := h.names[name]
	return addrs, ok
}

func (h *Hosts) refresh() {
	info, err := os.Stat(h.Path)
	if err != nil || (info.ModTime().Equal(h.mtime) && info.Size() == h.size) {
		return
	}
	if b, err := os.ReadFile(h.Path); err == nil {
		h.mtime, h.size, h.names = info.ModTime(), info.Size(), parseHosts(b)
	}
}

func parseHosts(b []byte) map[string][]netip.Addr {
	names := map[string][]netip.Addr{}
	s := bufio.NewScanner(bytes.NewReader(b))
	for s.Scan() {
		line, _, _ := strings.Cut(s.Text(), "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(f[0])
		if err != nil {
			continue
		}
		for _, n := range f[1:] {
			if n = normal(n); n != "" && !strings.HasSuffix(n, ".") { // no name ends with two dots
				names[n] = append(names[n], addr)
			}
		}
	}
	return names
}

func normal(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
