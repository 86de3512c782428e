package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPrintComparesWithFastRuns(t *testing.T) {
	runs := func(ready ...int) []Run {
		var all []Run
		for _, ms := range ready {
			d := time.Duration(ms) * time.Millisecond
			all = append(all, Run{Command: d / 2, Kubelet: d / 4, Registered: d / 2, Ready: d})
		}
		return all
	}
	var w strings.Builder
	Print(&w, []Comparison{
		{Case{Name: "mixed"}, runs(1000, 2000, 800), runs(300, 450, 400)},
		{Case{Name: "unlucky"}, runs(2000), runs(400)},
	})
	want := `
mixed (3 pairs; median, min–max, seconds)
  command         kubeadm join 0.500 (0.400–1.000)   berth 0.200 (0.150–0.225)   ratio 0.40
  kubelet starts  kubeadm join 0.250 (0.200–0.500)   berth 0.100 (0.075–0.113)   ratio 0.40
  registered      kubeadm join 0.500 (0.400–1.000)   berth 0.200 (0.150–0.225)   ratio 0.40
  Ready           kubeadm join 1.000 (0.800–2.000)   berth 0.400 (0.300–0.450)   ratio 0.40
  Ready, fast     kubeadm join 0.900 (0.800–1.000) in 2 fast runs   berth 0.400 (0.300–0.450) in all   ratio 0.44
  slow runs       kubeadm join 1 of 3   berth 0 of 3

unlucky (1 pairs; median, min–max, seconds)
  command         kubeadm join 1.000 (1.000–1.000)   berth 0.200 (0.200–0.200)   ratio 0.20
  kubelet starts  kubeadm join 0.500 (0.500–0.500)   berth 0.100 (0.100–0.100)   ratio 0.20
  registered      kubeadm join 1.000 (1.000–1.000)   berth 0.200 (0.200–0.200)   ratio 0.20
  Ready           kubeadm join 2.000 (2.000–2.000)   berth 0.400 (0.400–0.400)   ratio 0.20
  Ready, fast     kubeadm join has no fast run
  slow runs       kubeadm join 1 of 1   berth 0 of 1
`
	if d := cmp.Diff(want, w.String()); d != "" {
		t.Error(d)
	}
}
