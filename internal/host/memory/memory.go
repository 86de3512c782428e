// Package memory is a machine in memory: a file tree that knows what a power
// cut may do to it, a model of systemd that starts units from the definitions in
// that tree, programs as functions, and a clock that moves only with effects.
//
// Everything is deterministic: two hosts that are arranged alike and see the
// same calls in the same order have equal trees, unit states and logs.
package memory

import (
	"context"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// Step is how far the clock moves at each effect.
const Step = time.Millisecond

// epoch is when a new machine's clock starts.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Host is a machine in memory. It implements host.Host; the other methods are
// for tests: they arrange the machine, look at it and do to it what real
// machines suffer. Safe for concurrent use.
type Host struct {
	// jobMu lets one systemd job run at a time. It is taken before mu and held
	// while a Behaviour runs, so that a Behaviour may use files, not jobs.
	jobMu sync.Mutex

	mu       sync.Mutex
	now      time.Time
	stepped  time.Duration // by how much the clock was set
	nextIno  uint64
	root     *inode
	pending  []*nameOp
	mounts   []*mount
	devices  uint64 // mounts that there ever were
	values   map[string]value
	process  int // counts kills: handles of an older one are dead
	boots    int
	starts   int // of userspace
	off      bool
	locks    map[string]*lockState
	programs map[string]Program
	tables   map[string]host.FilterTable
	// filterNames are tables and chains besides those.
	filterNames []host.FilterName
	noTables    error
	watchers    map[*watcher]bool
	systemd     manager
}

var (
	_ host.Host     = (*Host)(nil)
	_ host.Appender = (*Host)(nil)
)

// New returns a machine that has booted once: the directories and the merged-usr
// links of a distribution, no unit files, no programs.
func New() *Host {
	h := &Host{
		now:      epoch,
		values:   map[string]value{},
		locks:    map[string]*lockState{},
		programs: map[string]Program{},
		tables:   map[string]host.FilterTable{},
		watchers: map[*watcher]bool{},
		systemd:  newManager(),
	}
	h.root = h.newInode(modeDir | 0o755)
	h.skeleton()
	h.bootID()
	h.loadAll()
	return h
}

// Now implements host.Clock.
func (h *Host) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Sleep implements host.Clock: the clock moves by d at once. Services that failed
// are restarted meanwhile.
func (h *Host) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.jobMu.Lock()
	defer h.jobMu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.now.Add(d)
	h.restartsUntil(end)
	h.now = latest(h.now, end)
	return nil
}

// Advance moves the clock.
func (h *Host) Advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// SetClock sets the clock forward or back: no time passes.
func (h *Host) SetClock(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now, h.stepped = h.now.Add(by), h.stepped+by
}

func (h *Host) tick() time.Time {
	h.now = h.now.Add(Step)
	h.wakeWatchers()
	return h.now
}

// Kill is the death of the process that uses the host (SIGKILL): its locks are
// free and its open files dead. What it wrote stays.
func (h *Host) Kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kill()
}

func (h *Host) kill() {
	h.process++
	clear(h.systemd.told)
	h.wakeWatchers()
	for _, l := range h.locks {
		l.release()
	}
}

// wait returns when ctx ends; it is what a hanging unit or program does.
func wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
