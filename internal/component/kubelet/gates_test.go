package kubelet

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

var byVersion = map[string][]string{
	"1.26.15":         {runtimeKind, streamingFlag},
	"1.27.0":          {streamingFlag},
	"1.28.15":         {streamingFlag},
	"1.29.0":          {nodeIPFlag, streamingFlag},
	"1.29.15":         {nodeIPFlag, streamingFlag},
	"1.30.0":          {configDirFlag, nodeIPFlag, streamingFlag},
	"1.31.14":         {configDirFlag, nodeIPFlag, streamingFlag},
	"1.32.0":          {configDirFlag, nodeIPFlag, streamingFlag, watchdog},
	"1.33.13":         {configDirFlag, nodeIPFlag, streamingFlag, watchdog},
	"1.34.0":          {configDirFlag, nodeIPFlag, watchdog},
	"1.36.3":          {configDirFlag, nodeIPFlag, watchdog},
	"1.37.2":          {configDirFlag, nodeIPFlag, watchdog},
	"of a branch":     {configDirFlag, nodeIPFlag, watchdog},
	"1.33.102-akslts": {configDirFlag, nodeIPFlag, streamingFlag, watchdog},
}

// TestGates looks for what has a gate in the text of the files.
func TestGates(t *testing.T) {
	for version, want := range byVersion {
		s := settings(func(s *Settings) {
			s.Version, s.NodeIP, s.Config = version, "10.0.0.4", []byte("{}")
			s.Flags = map[string]string{streamingFlag: "4h"}
		})
		text := written(t, s)
		var got []string
		for _, what := range slices.Sorted(maps.Keys(gates)) {
			if strings.Contains(text, what) {
				got = append(got, what)
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", version, diff)
		}
	}
}

// Each bound is tested at itself.
func TestGatesAreTestedAtTheirBounds(t *testing.T) {
	for what, g := range gates {
		for _, bound := range []string{g.since, g.until} {
			if bound != "" && byVersion[bound] == nil {
				t.Errorf("%s: %s is not tested", what, bound)
			}
		}
	}
}

func written(t *testing.T, s Settings) string {
	t.Helper()
	rs, err := Resources(s)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range rs {
		if f, ok := r.(*desired.File); ok {
			b.Write(f.Content.Data())
		}
	}
	return b.String()
}
