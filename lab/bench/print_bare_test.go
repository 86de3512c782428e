package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/lab/internal/site"
)

func TestPrintBare(t *testing.T) {
	runs := func(ready ...time.Duration) []Provision {
		var all []Provision
		for _, d := range ready {
			all = append(all, Provision{Run{d, d / 4, d / 2, d}, site.Fetched{Whole: d, Fetching: d / 2, Waiting: d / 5}})
		}
		return all
	}
	b := Bare{There: Supply{Name: "there", Runs: runs(time.Second, 3*time.Second)}, HTTP: Supply{Name: "HTTP", Runs: runs(2*time.Second, 6*time.Second), bytes: 105e6},
		Bundle: Supply{Name: "bundle", Runs: runs(3*time.Second, 9*time.Second)}}
	var w strings.Builder
	b.Print(&w)
	want := `
bare image, 105 MB to fetch (2 rounds; median, min–max, seconds)
  command         there 2.000 (1.000–3.000)   HTTP 4.000 (2.000–6.000)   ratio 2.00   bundle 6.000 (3.000–9.000)   ratio 3.00
  kubelet starts  there 0.500 (0.250–0.750)   HTTP 1.000 (0.500–1.500)   ratio 2.00   bundle 1.500 (0.750–2.250)   ratio 3.00
  registered      there 1.000 (0.500–1.500)   HTTP 2.000 (1.000–3.000)   ratio 2.00   bundle 3.000 (1.500–4.500)   ratio 3.00
  Ready           there 2.000 (1.000–3.000)   HTTP 4.000 (2.000–6.000)   ratio 2.00   bundle 6.000 (3.000–9.000)   ratio 3.00
  fetching        HTTP 2.000 (1.000–3.000)   bundle 3.000 (1.500–4.500)
  bytes alone     HTTP 0.800 (0.400–1.200)   bundle 1.200 (0.600–1.800)
  of the run      HTTP 20 % (20–20)   bundle 20 % (20–20)
`
	if d := cmp.Diff(want, w.String()); d != "" {
		t.Error(d)
	}
	b.Bundle.Runs = nil
	w.Reset()
	b.Print(&w)
	if w.Len() > 0 {
		t.Errorf("without runs: %s", w.String())
	}
}
