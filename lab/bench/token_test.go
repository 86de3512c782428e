package bench

import (
	"strings"
	"testing"
	"time"
)

func TestPrintTokens(t *testing.T) {
	var out strings.Builder
	(&Tokens{}).Print(&out)
	if out.Len() > 0 {
		t.Error(out.String())
	}
	ms := func(n ...int) (all []time.Duration) {
		for _, i := range n {
			all = append(all, time.Duration(i)*time.Millisecond)
		}
		return all
	}
	(&Tokens{Request: ms(5, 7), Uncached: ms(20, 30), Cached: ms(10, 12)}).Print(&out)
	for _, want := range []string{"2 rounds", "besides the request 0.019", "cached             0.011 (0.010–0.012)   bound 30 ms"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
