package host

import (
	"testing"
	"time"
)

func FuzzSeconds(f *testing.F) {
	f.Add("12345.67")
	f.Add("1e9")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ParseSeconds(text); err == nil && (d < 0 || d >= 1e9*time.Second) {
			t.Error(d)
		}
	})
}
