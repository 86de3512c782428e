package report

import (
	"strings"
	"unicode/utf8"
)

// Encode prints a result as one line of JSON of at most Limit bytes. Where it
// would be longer, Output loses its beginning, then the lists their ends, then
// Error its end, as much as must be and no more: the exit code and its name
// always fit.
func Encode(d Result) ([]byte, error) {
	d.Output = strings.ToValidUTF8(d.Output, "?")
	d.Error = strings.ToValidUTF8(d.Error, "?")
	own := Details{}
	if d.Berth != nil {
		own = *d.Berth
		d.Berth = &own
	}
	b, err := marshal(d)
	for _, c := range cuts(&d, &own) {
		if err != nil || len(b) <= Limit {
			break
		}
		b, err = c.fit(&d)
	}
	return b, err
}

// cut is a part of a result that may be shortened: how long it is, and what
// keeps k of it.
type cut struct {
	size int
	keep func(k int)
}

func cuts(d *Result, own *Details) []cut {
	return []cut{
		cutText(&d.Output, tailOf), cutList(&own.Unhandled), cutList(&own.Unverified),
		cutText(&d.Error, headOf), cutText(&d.SystemdSummary, headOf), cutText(&own.Doing, headOf),
		cutText(&own.Field, headOf), cutText(&own.Hint, headOf),
	}
}

// fit keeps as much of the part as lets the result fit, and nothing of it
// where that is not enough.
func (c cut) fit(d *Result) ([]byte, error) {
	low, high := 0, min(c.size, Limit)+1 // low fits or is nothing, high is too much
	for low+1 < high {
		k := (low + high) / 2
		c.keep(k)
		b, err := marshal(*d)
		if err != nil {
			return nil, err
		}
		if len(b) <= Limit {
			low = k
		} else {
			high = k
		}
	}
	c.keep(low)
	return marshal(*d)
}

const elision = "…"

func cutText(s *string, part func(s string, k int) string) cut {
	whole := *s
	return cut{len(whole), func(k int) { *s = part(whole, k) }}
}

func cutList(list *[]string) cut {
	whole := *list
	return cut{len(whole), func(k int) {
		*list = whole[:k:k]
		if 0 < k && k < len(whole) {
			*list = append(*list, elision)
		}
	}}
}

// tailOf is the end of a text: at most k bytes, whole runes, and a mark.
func tailOf(s string, k int) string {
	if k == 0 || k >= len(s) {
		return s[len(s)-min(k, len(s)):]
	}
	from := len(s) - k
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return elision + s[from:]
}

// headOf is the beginning of a text: at most k bytes, whole runes, and a mark.
func headOf(s string, k int) string {
	if k == 0 || k >= len(s) {
		return s[:min(k, len(s))]
	}
	for k > 0 && !utf8.RuneStart(s[k]) {
		k--
	}
	return s[:k] + elision
}
