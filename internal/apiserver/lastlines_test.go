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
