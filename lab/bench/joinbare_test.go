package bench

import (
	"strings"
	"testing"
	"time"
)

func TestPrintFloor(t *testing.T) {
	var out strings.Builder
	PrintFloor(&out, nil)
	if out.Len() > 0 {
		t.Error(out.String())
	}
	one := Floor{Join: Run{Kubelet: 2 * time.Second, Ready: 3 * time.Second}, Bytes: time.Second}
	other := Floor{Join: Run{Kubelet: time.Second, Ready: 3 * time.Second}, Bytes: time.Second}
	PrintFloor(&out, []Floor{one, other})
	for _, want := range []string{"2 rounds", "join to Ready     3.000 (3.000–3.000)", "floor             2.500 (2.000–3.000)", "join / floor      1.25 (1.00–1.50)   bound 1.30"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
