package containerd

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var byVersion = map[string][]string{
	"1.6.33": {configV2Words, onePluginDir, kataCommand},
	"1.7.0":  {configV2Words, cdi, onePluginDir, kataCommand},
	"1.7.29": {configV2Words, cdi, onePluginDir, kataCommand},
	"2.0.0":  {configV3Words, onePluginDir, kataConfig},
	"2.1.0":  {configV3Words, manyPluginDirs, kataConfig},
	"2.2.0":  {configV3Words, manyPluginDirs, kataConfig, mergedDropIns},
	"2.2.9":  {configV3Words, manyPluginDirs, kataConfig, mergedDropIns},
	"":       {configV2Words, onePluginDir, kataCommand},
}

// TestGates looks for what has a gate in the text of the configuration. How drop-ins are
// read, it does not say.
func TestGates(t *testing.T) {
	for version, want := range byVersion {
		text, err := Config(Settings{Version: version, Kata: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, what := range slices.Sorted(maps.Keys(gates)) {
			if what == mergedDropIns && (&editor{Changes: Changes{Version: version}}).merges() || what != mergedDropIns && strings.Contains(text, what) {
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
