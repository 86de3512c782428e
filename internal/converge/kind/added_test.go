package kind

import (
	"testing"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/google/go-cmp/cmp"
)

// FuzzAdded: a diff from nothing is what comparing with nothing would say.
func FuzzAdded(f *testing.F) {
	for _, text := range []string{"", "a", "a\n", "\n", "a\nb", "a\nb\n", "\n\n", "a\r\nb"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d := cmp.Diff(udiff.Unified("/dev/null", "/etc/a", "", text), added("/etc/a", text)); d != "" {
			t.Error(d)
		}
	})
}
