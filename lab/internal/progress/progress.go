// Package progress prints one line when a long step begins, one now and then
// while it lasts, and one with the elapsed time when it ends.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Log writes progress lines. The zero value discards them.
type Log struct {
	W io.Writer
	// Every is the distance between the lines of a step that lasts; 20 s if zero.
	Every time.Duration

	mu sync.Mutex
}

// Printf writes one line.
func (l *Log) Printf(format string, args ...any) {
	if l == nil || l.W == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.W, format+"\n", args...)
}

// Step runs f and says how long it took.
func (l *Log) Step(name string, f func() error) error {
	start := time.Now()
	l.Printf("%s …", name)
	stop := l.tick(name, start)
	err := f()
	stop()
	if err != nil {
		l.Printf("%s: failed after %s", name, seconds(start))
		return err
	}
	l.Printf("%s: %s", name, seconds(start))
	return nil
}

func (l *Log) tick(name string, start time.Time) (stop func()) {
	every := 20 * time.Second
	if l != nil && l.Every > 0 {
		every = l.Every
	}
	t := time.NewTicker(every)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-t.C:
				l.Printf("%s … %s", name, seconds(start))
			case <-done:
				return
			}
		}
	}()
	return func() { t.Stop(); close(done) }
}

func seconds(start time.Time) string {
	return fmt.Sprintf("%.1f s", time.Since(start).Seconds())
}
