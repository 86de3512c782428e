package kind

import (
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// Contents remembers, in a process that stays, what files held when they were
// read: what has the same inode, size and time of change is not read again. The
// zero value is empty.
type Contents struct {
	mu sync.Mutex
	of map[string]content
	// Words are what kinds keep for as long as the process stays.
	Words sync.Map
}

type content struct {
	sum  string
	info host.Info
}

// sum is what a file that is described by info is known to hold; "" if it is not.
func (c *Contents) sum(path string, info *host.Info) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.of[path]; ok && info.Unchanged(known.info) {
		return known.sum
	}
	return ""
}

// expect makes room for so many files at once.
func (c *Contents) expect(files int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]content, files)
	}
}

// hold notes what a file held that was read after info was made.
func (c *Contents) hold(path, sum string, info *host.Info, now time.Time) {
	if !info.Settled(now) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[path] = content{sum: sum, info: *info}
}

// MaxRead bounds the programs that are read in each plan, in bytes. What larger
// ones hold is read when a run has ended.
const MaxRead = 1 << 20
