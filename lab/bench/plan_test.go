package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPlans(t *testing.T) {
	const text = `goos: linux
BenchmarkPlan/empty-2         	      20	  10196097 ns/op	        70.00 actions	         6.500 cpu-ms/op	 1825960 B/op	   18151 allocs/op
BenchmarkPlan/empty-2         	      20	  12000000 ns/op	        70.00 actions	         6.500 cpu-ms/op	 1825960 B/op	   18151 allocs/op
BenchmarkPlan/applied         	      20	  15445251 ns/op	         0 actions	         9.000 cpu-ms/op	 2125224 B/op	   21311 allocs/op
PASS
`
	got := parsePlans(text)
	want := []Planning{{"empty", 10196097, 6500 * time.Microsecond, 70}, {"empty", 12 * time.Millisecond, 6500 * time.Microsecond, 70}, {"applied", 15445251, 9 * time.Millisecond, 0}}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	var w strings.Builder
	printPlans(&w, got)
	lines := strings.Split(w.String(), "\n")
	if len(lines) != 5 || strings.TrimSpace(lines[2]) != "empty      0.011 (0.010–0.012), CPU 0.006 (0.006–0.006), 70 actions   bound 20 ms" {
		t.Errorf("%q", lines)
	}
}
