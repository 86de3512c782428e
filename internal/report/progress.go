package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// Progress tells people what a run does: one line for each action that ended
// and, on a terminal, a last line with what is being done.
type Progress struct {
	// to is written to; where it is a terminal, width is its columns.
	to       io.Writer
	terminal bool
	width    int

	mu      sync.Mutex
	running []converge.Span
	// prepared are actions that wait for the moment at which all get their names.
	prepared []converge.Span
	live     bool
}

// NewProgress writes to w; terminal says whether that is one, width how many columns it has.
func NewProgress(w io.Writer, terminal bool, width int) *Progress {
	return &Progress{to: w, terminal: terminal, width: width}
}

// Observe is a converge.Observer.
func (p *Progress) Observe(s converge.Span) {
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
func (p *Progress) named(by desired.ID) {
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

// Doing is what was begun last and goes on; "" for nothing.
func (p *Progress) Doing() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.running) == 0 {
		return ""
	}
	last := p.running[len(p.running)-1]
	return fmt.Sprintf("%s %s", last.Verb, last.ID)
}

// Say prints a line between the actions.
func (p *Progress) Say(line string) {
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

func (p *Progress) line(s string) {
	p.clear()
	fmt.Fprintln(p.to, s)
}

func (p *Progress) clear() {
	if p.live {
		_, _ = io.WriteString(p.to, "\r\x1b[K")
		p.live = false
	}
}

// status draws the last line of a terminal.
func (p *Progress) status() {
	if !p.terminal {
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
	_, _ = io.WriteString(p.to, string(text[:min(len(text), p.width-1)]))
	p.live = true
}
