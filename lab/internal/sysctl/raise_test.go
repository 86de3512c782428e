package sysctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRaise(t *testing.T) {
	for have, want := range map[string]string{"128\n": "8192", "9000\n": "9000\n"} {
		path := filepath.Join(t.TempDir(), "limit")
		if err := os.WriteFile(path, []byte(have), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := raise(path, 8192); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q became %q, %v", have, got, err)
		}
	}
}

func TestWhatIsRaisedIsRestored(t *testing.T) {
	for path := range needs {
		covered := false
		for _, tree := range trees {
			covered = covered || strings.HasPrefix(path, tree+"/")
		}
		if !covered {
			t.Errorf("no snapshot has %s", path)
		}
	}
}
