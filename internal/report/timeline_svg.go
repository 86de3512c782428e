package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/converge"
)

// Geometry of the picture, in pixels.
const (
	svgNames = 430
	svgBars  = 760
	svgTook  = 90
	svgRow   = 20
	svgTop   = 64
	svgWidth = svgNames + svgBars + svgTook
)

const svgStyle = `text{font:12px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328}` +
	`.t{font-size:14px;font-weight:bold}.d{fill:#59636e}.g{stroke:#d1d9e0;stroke-width:1}` +
	`.stage{fill:#8fb8ed}.commit{fill:#1f6feb}.wait{fill:#8b949e}.failed{fill:#d1242f}`

// WriteSVG draws the timeline as a picture that needs no other file: one row
// for each span, light for what shows nothing yet, dark for what changes the
// machine, grey for waiting, red for what failed.
func (t *Timeline) WriteSVG(w io.Writer) error {
	t.sort()
	height := svgTop + svgRow*len(t.Spans) + 16
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d"><style>%s</style>`+"\n",
		svgWidth, height, svgWidth, height, svgStyle)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/><text class="t" x="12" y="24">%s</text>`+"\n", svgWidth, height, escaped(t.title()))
	t.axis(&b, height)
	for i, s := range t.Spans {
		t.svgRow(&b, s, svgTop+i*svgRow)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Timeline) axis(b *strings.Builder, height int) {
	total := t.End.Sub(t.Start)
	step := tick(total)
	for i := time.Duration(0); i <= total/step; i++ {
		at := i * step
		x := t.x(t.Start.Add(at))
		fmt.Fprintf(b, `<line class="g" x1="%.1f" y1="48" x2="%.1f" y2="%d"/><text class="d" x="%.1f" y="44" text-anchor="middle">%s</text>`+"\n",
			x, x, height-12, x, at)
	}
}

func (t *Timeline) svgRow(b *strings.Builder, s converge.Span, y int) {
	class := s.Phase
	if s.Error != "" {
		class = "failed"
	}
	end := t.spanEnd(s)
	x, width := t.x(s.Start), max(t.x(end)-t.x(s.Start), 1.5)
	fmt.Fprintf(b, `<g><title>%s</title><text x="12" y="%d">%s</text>`, escaped(tooltip(s, end.Sub(s.Start))), y+14,
		escaped(strings.TrimRight(pad(label(s), 57), " ")))
	fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="12" rx="2"/>`, escaped(class), x, y+4, width)
	fmt.Fprintf(b, `<text class="d" x="%.1f" y="%d">%s</text></g>`+"\n", x+width+5, y+14, escaped(roundMillis(end.Sub(s.Start))))
}

func (t *Timeline) x(at time.Time) float64 {
	total := t.End.Sub(t.Start)
	if total <= 0 {
		return svgNames
	}
	return svgNames + svgBars*float64(at.Sub(t.Start))/float64(total)
}

// tick is a round step that gives four to ten marks.
func tick(total time.Duration) time.Duration {
	for unit := time.Millisecond; unit < 1000*time.Hour; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if total <= 10*n*unit {
				return n * unit
			}
		}
	}
	return total/10 + 1
}

func tooltip(s converge.Span, took time.Duration) string {
	parts := []string{label(s), roundMillis(took)}
	if s.Waited != "" {
		parts = append(parts, "after "+string(s.Waited))
	}
	if s.Detail != "" {
		parts = append(parts, s.Detail)
	}
	if s.Error != "" {
		parts = append(parts, s.Error)
	}
	return strings.Join(parts, "\n")
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}
