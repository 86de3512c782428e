package converge_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A plan may be read by many: it does not show what only root may read, whatever
// comes in its place.
func TestPlansDoNotShowPrivateFiles(t *testing.T) {
	const old, other = "password = \"hunter2\"\n", "version = 3\nroot = \"/x\"\n"
	for name, c := range map[string]struct {
		mode  desired.Mode
		want  string
		shown []string
	}{
		"private":      {0o600, other, []string{"-REDACTED#", "+version = 3\n", "+root = \"/x\"\n"}},
		"not readable": {0o200, other, []string{"-REDACTED#", "+version = 3\n"}},
		"same content": {0o600, old, nil},
		"public":       {0o644, other, []string{"-password = \"hunter2\"", "+version = 3\n"}},
		"for a group":  {0o640, other, []string{"-password = \"hunter2\"", "+version = 3\n"}},
		"no text":      {0o600, "\xff\n", []string{"-REDACTED#", "+<2 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			h.Put("/etc/containerd/config.toml", old, c.mode.Perm())
			p, err := engine(h, &providers{}).Plan(t.Context(), sealed(t, managed("/etc/containerd/config.toml", c.want)))
			if err != nil || len(p.Actions) != 1 {
				t.Fatalf("%v, %v", verbs(p), err)
			}
			diff := p.Actions[0].Diff
			for _, want := range c.shown {
				if !strings.Contains(diff, want) {
					t.Errorf("no %q in\n%s", want, diff)
				}
			}
			if c.mode&0o077 == 0 && strings.Contains(diff, "hunter2") {
				t.Errorf("shown:\n%s", diff)
			}
		})
	}
}
