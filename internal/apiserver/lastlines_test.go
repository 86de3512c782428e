package apiserver

import (
	"strings"
	"testing"
)

func TestEnding(t *testing.T) {
	long := strings.Repeat("x", maxEnding)
	for text, want := range map[string]string{
		"":                                     "",
		"a\nb":                                 "a\nb",
		"first\n" + long:                       long,
		"first\nsecond\n" + long:               long,
		long + "\nlast":                        "last",
		long + "xx":                            long + "…",
		"x" + strings.Repeat("ä", maxEnding/2): "x" + strings.Repeat("ä", maxEnding/2-1) + "…",
	} {
		if got := ending(text); got != want {
			t.Errorf("%.20s… of %d bytes became %.20s… of %d bytes", text, len(text), got, len(got))
		}
	}
}

// TestLastLinesAreText: programs write colours into their logs, and a terminal would obey
// what else stands there.
func TestLastLinesAreText(t *testing.T) {
	log := "\x1b[1;31mERROR\x1b[0m no\tdriver\x07\r\n\x1b]0;title\x07\x00last\u009b2J\n"
	if got, want := asLastLines(log), "; its last lines:\n  ERROR no\tdriver\n  ]0;titlelast2J"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
