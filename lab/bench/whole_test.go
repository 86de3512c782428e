package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestParseOwn: what waits for others counts once, however many wait at the same time.
func TestParseOwn(t *testing.T) {
	const text = `{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:01Z", "spans": [
{"id": "unit:b", "phase": "commit", "start": "2026-01-01T00:00:00.3Z", "end": "2026-01-01T00:00:00.5Z"},
{"id": "file:/a", "phase": "commit", "start": "2026-01-01T00:00:00.6Z", "end": "2026-01-01T00:00:00.9Z"},
{"id": "credential:/k", "phase": "stage", "start": "2026-01-01T00:00:00.2Z", "end": "2026-01-01T00:00:00.4Z"},
{"id": "check:api", "phase": "stage", "start": "2026-01-01T00:00:00.35Z", "end": "2026-01-01T00:00:00.4Z"}]}`
	got, err := parseOwn("0.12\n", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Own{Run: time.Second, Clock: 700 * time.Millisecond, CPU: 120 * time.Millisecond}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for cpu, text := range map[string]string{"": text, "0.1": "{"} {
		if _, err := parseOwn(cpu, []byte(text)); err == nil {
			t.Errorf("%q and %q say something", cpu, text)
		}
	}
}

func TestPrintWhole(t *testing.T) {
	var out strings.Builder
	Whole{}.Print(&out)
	if out.Len() > 0 {
		t.Error(out.String())
	}
	runs := func(ms ...int) (all []Own) {
		for _, n := range ms {
			d := time.Duration(n) * time.Millisecond
			all = append(all, Own{Run: 10 * d, Clock: 2 * d, CPU: d})
		}
		return all
	}
	Whole{Least: Document{name: "least", Runs: runs(20, 30, 40)}, Most: Document{name: "whole", Runs: runs(50, 60, 70)}}.Print(&out)
	for _, want := range []string{"3 rounds", "whole  run 0.600 (0.500–0.700)   own clock 0.120 (0.100–0.140)   own CPU 0.060 (0.050–0.070)", "own clock 0.060   own CPU 0.030   bound 0.100"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
