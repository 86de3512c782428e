package containerd

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/gates"
)

var byVersion = map[string][]string{
	"1.6.33": {gates.ConfigV2, gates.OnePluginDir, gates.KataCommand},
	"1.7.0":  {gates.ConfigV2, gates.CDI, gates.OnePluginDir, gates.KataCommand},
	"1.7.29": {gates.ConfigV2, gates.CDI, gates.OnePluginDir, gates.KataCommand},
	"2.0.0":  {gates.ConfigV3, gates.OnePluginDir, gates.KataConfig},
	"2.1.0":  {gates.ConfigV3, gates.ManyPluginDirs, gates.KataConfig},
	"2.2.0":  {gates.ConfigV3, gates.ManyPluginDirs, gates.KataConfig, gates.MergedDropIns},
	"2.2.9":  {gates.ConfigV3, gates.ManyPluginDirs, gates.KataConfig, gates.MergedDropIns},
	"":       {gates.ConfigV2, gates.OnePluginDir, gates.KataCommand},
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
		for _, g := range gates.Of(gates.Containerd) {
			what := g.Name
			if what == gates.MergedDropIns && (&editor{Changes: Changes{Version: version}}).merges() || what != gates.MergedDropIns && strings.Contains(text, what) {
				got = append(got, what)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", version, diff)
		}
	}
}

// Each bound is tested at itself.
func TestGatesAreTestedAtTheirBounds(t *testing.T) {
	for _, g := range gates.Of(gates.Containerd) {
		for _, bound := range []string{g.Since, g.Until} {
			if bound != "" && byVersion[bound] == nil {
				t.Errorf("%s: %s is not tested", g.Name, bound)
			}
		}
	}
}
