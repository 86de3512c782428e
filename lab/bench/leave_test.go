package bench

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

func TestLeftovers(t *testing.T) {
	before := map[string]lab.Entry{"/d": {Mode: fs.ModeDir, Size: 40}, "/same": {SHA256: "1"}, "/changed": {SHA256: "1"}, "/gone": {}, "/mode": {Mode: 0o644}}
	now := map[string]lab.Entry{"/d": {Mode: fs.ModeDir, Size: 60}, "/same": {SHA256: "1"}, "/changed": {SHA256: "2"}, "/new": {}, "/mode": {Mode: 0o600}}
	if n := differing(before, now); n != 4 {
		t.Errorf("%d files, want 4", n)
	}
	for _, tc := range []struct {
		before, now string
		want        int
	}{
		{"", "", 0}, {"a b b", "b a", 0}, {"a", "a a c", 2}, {"x 1", "x 2", 1},
	} {
		if n := more(strings.Split(tc.before, " "), strings.Split(tc.now, " ")); n != tc.want {
			t.Errorf("%q to %q: %d lines, want %d", tc.before, tc.now, n, tc.want)
		}
	}
}

func TestPrintLeave(t *testing.T) {
	var out strings.Builder
	PrintLeave(&out, []Departure{
		{Name: "kubeadm reset -f", Runs: []Left{{time.Second, map[string]int{"files": 18, "Node": 1}}, {3 * time.Second, map[string]int{"files": 17}}}},
		{Name: "berth leave"},
	})
	for _, want := range []string{"2 rounds", "kubeadm reset -f          2.000 (1.000–3.000)   files 18  netfilter rules 0", "Node 1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "berth leave ") {
		t.Error(out.String())
	}
}
