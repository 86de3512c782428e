package exitcode

import (
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write goldens")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is stale (-file +now):\n%s", file, d)
	}
}

func TestRegistryPage(t *testing.T) {
	golden(t, "../../docs/exit-codes.md", Markdown())
}

func TestRegistryEntries(t *testing.T) {
	name := regexp.MustCompile(`^(OK|ERR_[A-Z0-9_]+)$`)
	seen := map[string]bool{}
	last := -1
	for _, c := range Registry() {
		if c.Number <= last || c.Number > 254 {
			t.Errorf("%d does not follow %d", c.Number, last)
		}
		last = c.Number
		if !name.MatchString(c.Name) || seen[c.Name] {
			t.Errorf("%d: name %q is malformed or taken", c.Number, c.Name)
		}
		seen[c.Name] = true
		if c.Meaning == "" || c.Hint == "" {
			t.Errorf("%d says nothing", c.Number)
		}
	}
}

func TestUnregistered(t *testing.T) {
	if got := ByNumber(199).Name; got != "ERR_199" {
		t.Errorf("unregistered: %q", got)
	}
}
