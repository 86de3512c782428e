package kubelet

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/gates"
	"github.com/berth-dev/berth/internal/desired"
)

var byVersion = map[string][]string{
	"1.26.15":         {gates.RuntimeKind, gates.StreamingFlag},
	"1.27.0":          {gates.StreamingFlag},
	"1.28.15":         {gates.StreamingFlag},
	"1.29.0":          {gates.NodeIPFlag, gates.StreamingFlag},
	"1.29.15":         {gates.NodeIPFlag, gates.StreamingFlag},
	"1.30.0":          {gates.ConfigDirFlag, gates.NodeIPFlag, gates.StreamingFlag},
	"1.31.14":         {gates.ConfigDirFlag, gates.NodeIPFlag, gates.StreamingFlag},
	"1.32.0":          {gates.ConfigDirFlag, gates.NodeIPFlag, gates.StreamingFlag, gates.Watchdog},
	"1.33.13":         {gates.ConfigDirFlag, gates.NodeIPFlag, gates.StreamingFlag, gates.Watchdog},
	"1.34.0":          {gates.ConfigDirFlag, gates.NodeIPFlag, gates.Watchdog},
	"1.36.3":          {gates.ConfigDirFlag, gates.NodeIPFlag, gates.Watchdog},
	"1.37.2":          {gates.ConfigDirFlag, gates.NodeIPFlag, gates.Watchdog},
	"of a branch":     {gates.ConfigDirFlag, gates.NodeIPFlag, gates.Watchdog},
	"1.33.102-akslts": {gates.ConfigDirFlag, gates.NodeIPFlag, gates.StreamingFlag, gates.Watchdog},
}

// TestGates looks for what has a gate in the text of the files.
func TestGates(t *testing.T) {
	for version, want := range byVersion {
		s := settings(func(s *Settings) {
			s.Version, s.NodeIP, s.Config = version, "10.0.0.4", []byte("{}")
			s.Flags = map[string]string{gates.StreamingFlag: "4h"}
		})
		text := written(t, s)
		var got []string
		for _, g := range gates.Of(gates.Kubelet) {
			what := g.Name
			if strings.Contains(text, what) {
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
	for _, g := range gates.Of(gates.Kubelet) {
		for _, bound := range []string{g.Since, g.Until} {
			if bound != "" && byVersion[bound] == nil {
				t.Errorf("%s: %s is not tested", g.Name, bound)
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
