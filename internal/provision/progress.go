package provision

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// progressPath tells of the run that goes on. It is there from before the last
// result goes until the run's own is written.
const progressPath = report.RunDir + "/provision.progress"

// progressEvery is how often a run says anew what it does.
const progressEvery = 500 * time.Millisecond

// Progress is a run that goes on, as it tells of itself.
type Progress struct {
	Command string    `json:"command"`
	PID     int       `json:"pid"`
	Start   time.Time `json:"start"`
	// Stage is how far it has come; Doing is what it does, and what a machine that
	// stays so waits for.
	Stage Stage  `json:"stage,omitempty"`
	Doing string `json:"doing,omitempty"`
}

// String is the run in one line.
func (p Progress) String() string {
	return fmt.Sprintf("goes on since %s (%s, pid %d): %s", report.SystemdTime(p.Start), p.Command, p.PID, p.Doing)
}

// Underway finds the run that goes on; false where there is none. What a killed
// run left counts for nothing: nobody holds its lock.
func Underway(h host.Host) (Progress, bool) {
	p, ok := readProgress(h)
	if !ok {
		return Progress{}, false
	}
	unlock, err := h.Lock(over, lockPath, "a look (pid "+fmt.Sprint(os.Getpid())+")")
	if err == nil {
		_ = unlock() // the kernel does it, too, when the program ends
		return Progress{}, false
	}
	return p, true
}

func readProgress(h host.FS) (p Progress, ok bool) {
	b, err := h.ReadFile(progressPath)
	return p, err == nil && json.Unmarshal(b, &p) == nil
}

// announce tells of the run until withdraw is called, which may be done twice.
// It is best effort: no run fails because nobody can be told of it.
func (r *run) announce() (withdraw func()) {
	told := r.progress("read " + r.Config)
	_ = r.tellProgress(told)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		_ = converge.Safely(func() error { r.follow(told, done); return nil })
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-stopped
		_ = r.Host.Remove(progressPath)
	})
}

// follow tells anew whenever the run does something else.
func (r *run) follow(told Progress, done <-chan struct{}) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-done:
			return
		}
		if now := r.progress(r.current()); now != told {
			told = now
			_ = r.tellProgress(now)
		}
	}
}

func (r *run) progress(doing string) Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Progress{Command: r.Command, PID: os.Getpid(), Start: r.Start, Stage: r.stage, Doing: doing}
}

func (r *run) tellProgress(p Progress) error {
	r.Status(p.Doing)
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return host.WriteFile(r.Host, progressPath, append(b, '\n'), host.Attributes{Mode: 0o600})
}
