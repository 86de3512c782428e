package host

import (
	"errors"
	"testing"
)

// TestTemplates: the type is what follows the last dot, the instance what stands
// between it and the first @.
func TestTemplates(t *testing.T) {
	for name, want := range map[string]bool{
		"w@.service": true, "io.x.proxy@.service": true,
		"w.service": false, "w@a.service": false, "io.x.proxy@a.b.service": false, "w@.b.service": false, "w@a@.service": false,
	} {
		if err := CheckUnit(name); errors.Is(err, ErrNotAUnit) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
