package provision

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/report"
)

// progressPath tells of the run that goes on. It is there from before the last
// result goes until the run's own is written.
const progressPath = paths.RunDir + "/provision.progress"

// applyPath tells of the command apply that goes on.
const applyPath = paths.RunDir + "/apply.progress"

// progressEvery is how often a run says anew what it does.
const progressEvery = 500 * time.Millisecond

// Progress is a run that goes on, as it tells of itself.
type Progress struct {
	Command string    `json:"command"`
	PID     int       `json:"pid"`
	Start   time.Time `json:"start"`
	// Milestone is how far it has come; Doing is what it does, and what a machine that
	// stays so waits for.
	Milestone Milestone `json:"milestone,omitempty"`
	Doing     string    `json:"doing,omitempty"`
}

// String is the run in one line.
func (p Progress) String() string {
	return fmt.Sprintf("goes on since %s (%s, pid %d): %s", report.SystemdTime(p.Start), p.Command, p.PID, p.Doing)
}

// Underway finds the run that goes on; false where there is none. What a killed
// run left counts for nothing: nobody holds its lock.
func Underway(h host.Host) (Progress, bool) {
	p, ok := readProgress(h, progressPath)
	return p, ok && holder(h, lockPath) != ""
}

// Applying finds the command apply that goes on, as Underway finds a run.
func Applying(h host.Host) (Progress, bool) {
	p, ok := readProgress(h, applyPath)
	return p, ok && holder(h, ledger.LockPath) == p.holder()
}

// holder is who holds a lock; "" for nobody.
func holder(h host.Host, path string) string {
	unlock, err := h.Lock(over, path, "a look (pid "+fmt.Sprint(os.Getpid())+")")
	if err == nil {
		_ = unlock() // the kernel does it, too, when the program ends
		return ""
	}
	if held, ok := errors.AsType[*host.LockedError](err); ok {
		return held.Holder
	}
	return "unknown"
}

func readProgress(h host.FS, path string) (p Progress, ok bool) {
	b, err := h.ReadFile(path)
	return p, err == nil && json.Unmarshal(b, &p) == nil
}

// announce tells of the run until withdraw is called, which may be done twice.
// It is best effort: no run fails because nobody can be told of it.
func (r *run) announce() (withdraw func()) {
	first := r.progress("read " + r.Config)
	r.Status(first.Doing)
	_ = first.tell(r.Host, progressPath)
	told := first.Doing
	return follow(r.Host, progressPath, first, func() Progress {
		p := r.progress(r.current())
		if p.Doing != told {
			told = p.Doing
			r.Status(told)
		}
		return p
	})
}

// Tell has a command that applies a document tell what it is doing until withdraw
// is called. One that is done soon tells nothing.
func Tell(h host.Host, command string, start time.Time, doing func() string) (withdraw func()) {
	p := Progress{Command: command, PID: os.Getpid(), Start: start}
	return follow(h, applyPath, Progress{}, func() Progress {
		p.Doing = doing()
		return p
	})
}

// follow tells anew whenever what is done is not what was told. Who does nothing yet waits
// for the lock, and leaves what its holder tells.
func follow(h host.Host, path string, told Progress, now func() Progress) (withdraw func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		_ = converge.Safely(func() error { keepTelling(h, path, told, now, done); return nil })
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-stopped
		if p, ok := readProgress(h, path); ok && p.PID == os.Getpid() {
			_ = h.Remove(path)
		}
	})
}

func keepTelling(h host.Host, path string, told Progress, now func() Progress, done <-chan struct{}) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-done:
			return
		}
		if p := now(); p.Doing != "" && p != told && p.tell(h, path) == nil {
			told = p
		}
	}
}

func (r *run) progress(doing string) Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Progress{Command: r.Command, PID: os.Getpid(), Start: r.Start, Milestone: r.milestone, Doing: doing}
}

// holder is what the command calls itself where it holds a lock.
func (p Progress) holder() string { return fmt.Sprintf("%s (pid %d)", p.Command, p.PID) }

func (p Progress) tell(h host.Host, path string) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return host.WriteFile(h, path, append(b, '\n'), host.Attributes{Mode: 0o600})
}
