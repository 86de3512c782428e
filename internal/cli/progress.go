package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// progress tells people what a run does: one line for each action that ended
// and, on a terminal, a last line with what is being done.
type progress struct {
	env     *env
	mu      sync.Mutex
	running []converge.Span
	// prepared are actions that wait for the moment at which all get their names.
	prepared []converge.Span
	live     bool
}

func newProgress(e *env) *progress { return &progress{env: e} }

// observe is a converge.Observer.
func (p *progress) observe(s converge.Span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := func(o converge.Span) bool { return o.ID == s.ID && o.Phase == s.Phase && o.Verb == s.Verb }
	p.running = slices.DeleteFunc(p.running, same)
	switch {
	case s.End.IsZero():
		p.running = append(p.running, s)
	case s.Error == converge.GivenUp:
	case s.Error != "":
		p.line(ended(s))
	case prepares(s):
		p.prepared = append(p.prepared, s)
	case s.ID == names, s.ID == enablement:
		p.named(s.ID)
	default:
		p.line(ended(s))
	}
	p.status()
}

// The spans of the engine in which what was prepared gets its name: the files,
// and last what makes units start at boot.
const (
	names      desired.ID = "names"
	enablement desired.ID = "enablement"
)

// prepares says whether more must follow before the action is done.
func prepares(s converge.Span) bool {
	return s.Phase == "stage" && s.Verb != converge.VerbIssue && s.Verb != converge.VerbCheck && s.Verb != converge.VerbFetch
}

// named tells of the actions that are done with a span of names.
func (p *progress) named(by desired.ID) {
	var rest []converge.Span
	for _, s := range p.prepared {
		if (s.Verb == converge.VerbEnable) != (by == enablement) {
			rest = append(rest, s)
			continue
		}
		p.line(ended(s))
	}
	p.prepared = rest
}

// doing is what was begun last and goes on; "" for nothing.
func (p *progress) doing() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.running) == 0 {
		return ""
	}
	last := p.running[len(p.running)-1]
	return fmt.Sprintf("%s %s", last.Verb, last.ID)
}

// say prints a line between the actions.
func (p *progress) say(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(line)
	p.status()
}

func ended(s converge.Span) string {
	took := s.End.Sub(s.Start).Round(100 * time.Microsecond)
	line := fmt.Sprintf("%s %s (%s)", s.Verb, s.ID, took)
	if s.Detail != "" {
		line += " " + s.Detail
	}
	if s.Error == "" {
		line += rate(s.Bytes, s.End.Sub(s.Start))
	}
	if s.Error != "" {
		line += " FAILED: " + s.Error
	}
	return line
}

func (p *progress) line(s string) {
	p.clear()
	fmt.Fprintln(p.env.err, s)
}

func (p *progress) clear() {
	if p.live {
		_, _ = io.WriteString(p.env.err, "\r\x1b[K")
		p.live = false
	}
}

// status draws the last line of a terminal.
func (p *progress) status() {
	if !p.env.terminal {
		return
	}
	p.clear()
	if len(p.running) == 0 {
		return
	}
	var names []string
	for _, s := range p.running {
		names = append(names, doing(s, time.Now()))
	}
	text := []rune("… " + strings.Join(names, ", "))
	_, _ = io.WriteString(p.env.err, string(text[:min(len(text), p.env.width-1)]))
	p.live = true
}

// terminal says whether a file is a terminal, and how wide; 100 columns where
// that is unknown.
func terminal(f *os.File) (bool, int) {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) {
		return false, 100
	}
	if w, _, err := term.GetSize(fd); err == nil && w > 20 {
		return true, w
	}
	return true, 100
}
