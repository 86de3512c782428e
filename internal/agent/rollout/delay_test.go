package rollout

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	own := jitter("n1", "c1", 5*time.Minute)
	for name, tc := range map[string]struct {
		annotations map[string]string
		window      time.Duration
		want        time.Duration
		fails       bool
	}{
		"annotation":        {map[string]string{DelayAnnotation: "7.5s"}, time.Minute, 7500 * time.Millisecond, false},
		"published value":   {map[string]string{DelayAnnotation: "5.806451612s"}, time.Minute, 5806451612, false},
		"beyond the window": {map[string]string{DelayAnnotation: "30m"}, time.Minute, 30 * time.Minute, false},
		"at once":           {map[string]string{DelayAnnotation: "0s"}, 5 * time.Minute, 0, false},
		"none":              {map[string]string{"other": "1s"}, 5 * time.Minute, own, false},
		"no annotations":    {nil, 5 * time.Minute, own, false},
		"no window":         {nil, 0, 0, false},
		"negative window":   {nil, -time.Second, 0, false},
		"negative":          {map[string]string{DelayAnnotation: "-1s"}, 5 * time.Minute, own, true},
		"empty":             {map[string]string{DelayAnnotation: ""}, 5 * time.Minute, own, true},
		"no unit":           {map[string]string{DelayAnnotation: "17"}, 5 * time.Minute, own, true},
	} {
		got, err := Delay(tc.annotations, "n1", "c1", tc.window)
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestJitterSpreads holds the stated bound for a thousand nodes over 300 s: 3.3
// are expected in each second; that some second has more than 16 has a probability
// below 300*P(Poisson(3.3) > 16) < 1e-5.
func TestJitterSpreads(t *testing.T) {
	const nodes, window = 1000, 300 * time.Second
	for _, checksum := range []string{"", "a", "b", "3b9aca00"} {
		perSecond := make([]int, 300)
		close := 0
		var all []time.Duration
		for n := range nodes {
			d := jitter(fmt.Sprintf("shoot--p--c-pool-z1-%05d", n), checksum, window)
			if d < 0 || d >= window {
				t.Fatalf("%s is outside the window", d)
			}
			perSecond[d/time.Second]++
			all = append(all, d)
		}
		if most := slices.Max(perSecond); most > 16 {
			t.Errorf("%q: %d nodes in one second", checksum, most)
		}
		slices.Sort(all)
		for i := 1; i < nodes; i++ {
			if all[i]-all[i-1] < 10*time.Millisecond {
				close++
			}
		}
		// Pairs closer than d: at most N²d/W = 33 are expected; 8 standard deviations more.
		if bound := 33 + 8*math.Sqrt(33); float64(close) > bound {
			t.Errorf("%q: %d pairs within 10 ms", checksum, close)
		}
	}
	if jitter("n1", "a", window) == jitter("n1", "b", window) {
		t.Error("the same order for each document")
	}
}

func FuzzDelay(f *testing.F) {
	f.Add("5s", "n", "c", int64(1))
	f.Fuzz(func(t *testing.T, text, node, checksum string, window int64) {
		d, _ := Delay(map[string]string{DelayAnnotation: text}, node, checksum, time.Duration(window))
		if d < 0 {
			t.Fatal(d)
		}
	})
}
