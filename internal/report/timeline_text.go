package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/internal/converge"
)

// WriteText prints the timeline as a waterfall of width columns (at least 60).
func (t *Timeline) WriteText(w io.Writer, width int) error {
	t.sort()
	names := 24
	for _, s := range t.Spans {
		names = max(names, utf8.RuneCountInString(label(s)))
	}
	names = min(names, 56)
	bars := max(max(width, 60)-names-24, 10)
	var b strings.Builder
	b.WriteString(t.title() + "\n")
	fmt.Fprintf(&b, "%9s %9s  %-*s  %s\n", "start", "took", names, "action", "│")
	for _, s := range t.Spans {
		b.WriteString(t.row(s, names, bars))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Timeline) row(s converge.Span, names, bars int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9s %9s  %s  │%s", "+"+roundMillis(s.Start.Sub(t.Start)), roundMillis(t.spanEnd(s).Sub(s.Start)),
		pad(label(s), names), t.bar(s, bars))
	if s.Waited != "" {
		b.WriteString(" after " + string(s.Waited))
	}
	if s.Detail != "" {
		b.WriteString(" " + s.Detail)
	}
	if s.Error != "" {
		b.WriteString(" FAILED: " + s.Error)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// bar draws a span on a line of n columns; every span is at least one mark.
func (t *Timeline) bar(s converge.Span, n int) string {
	from, to := t.column(s.Start, n), t.column(t.spanEnd(s), n)
	mark := "█"
	if s.Phase == "stage" {
		mark = "▒"
	}
	if from >= n {
		from = n - 1
	}
	to = min(max(to, from+1), n)
	return strings.Repeat(" ", from) + strings.Repeat(mark, to-from) + strings.Repeat(" ", n-to)
}

func (t *Timeline) column(at time.Time, n int) int {
	total := t.End.Sub(t.Start)
	if total <= 0 {
		return 0
	}
	return max(0, int(float64(n)*float64(at.Sub(t.Start))/float64(total)))
}

// pad brings a name to n runes; one that is too long loses its middle, since
// kind and file name are at its ends.
func pad(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s + strings.Repeat(" ", n-len(r))
	}
	head := n / 3
	return string(r[:head]) + "…" + string(r[len(r)-(n-head-1):])
}
