package gates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
)

// Each bound is where it says, and a version that can't be read is on the side that its
// gate says.
func TestTakes(t *testing.T) {
	for name, c := range map[string]struct{ takes, refuses []string }{
		ConfigDirFlag:  {[]string{"1.30.0", "v1.30.0", "1.37.2", "", "of a branch"}, []string{"1.29.15"}},
		NodeIPFlag:     {[]string{"1.29.0", "1.33.102-akslts", ""}, []string{"1.28.15"}},
		RuntimeKind:    {[]string{"1.26.15"}, []string{"1.27.0", "of a branch"}},
		StreamingFlag:  {[]string{"1.33.102-akslts"}, []string{"1.34.0", ""}},
		Watchdog:       {[]string{"1.32.0", ""}, []string{"1.31.14"}},
		PodTokens:      {[]string{"1.34.0", "1.37.2"}, []string{"1.33.13", "", "of a branch"}},
		ConfigV3:       {[]string{"2.0.0"}, []string{"1.7.29", ""}},
		ConfigV2:       {[]string{"1.7.29", ""}, []string{"2.0.0"}},
		CDI:            {[]string{"1.7.0", "1.7.29"}, []string{"1.6.33", "2.0.0", ""}},
		ManyPluginDirs: {[]string{"2.1.0"}, []string{"2.0.9", ""}},
		OnePluginDir:   {[]string{"2.0.9", ""}, []string{"2.1.0"}},
		KataConfig:     {[]string{"2.0.0"}, []string{"1.7.29", ""}},
		KataCommand:    {[]string{"1.7.29", ""}, []string{"2.0.0"}},
		MergedDropIns:  {[]string{"2.2.0"}, []string{"2.1.9", ""}},
		"no gate":      {[]string{"1.0.0", ""}, nil},
	} {
		for _, v := range c.takes {
			if !Takes(name, v) {
				t.Errorf("%s is not for %q", name, v)
			}
		}
		for _, v := range c.refuses {
			if Takes(name, v) {
				t.Errorf("%s is for %q", name, v)
			}
		}
	}
}

// The page has the table; a name stands in it once, with a bound.
func TestTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| what | read by | since | until | why |\n|---|---|---|---|---|\n")
	seen := map[string]bool{}
	for _, g := range Table() {
		if seen[g.Name] || g.Since == "" && g.Until == "" {
			t.Errorf("%+v", g)
		}
		seen[g.Name] = true
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", g.Name, g.Reader, g.Since, g.Until, g.Why)
	}
	if n := len(Of(Kubelet)) + len(Of(Containerd)); n != len(seen) {
		t.Errorf("%d of %d have a reader", n, len(seen))
	}
	golden.Region(t, "../../../docs/contracts/aks.md", "gates", b.String())
}
