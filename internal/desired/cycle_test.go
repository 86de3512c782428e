package desired

import (
	"strings"
	"testing"
)

// What waits for itself would never run.
func TestSealRefusesCycles(t *testing.T) {
	for name, c := range map[string]struct {
		after map[string][]ID
		want  string
	}{
		"itself": {map[string][]ID{"/a": {"file:/a"}}, "file:/a, file:/a"},
		"two":    {map[string][]ID{"/a": {"file:/b"}, "/b": {"file:/a"}}, "file:/a, file:/b, file:/a"},
		"behind others": {map[string][]ID{"/a": {"file:/b"}, "/b": {"file:/c"}, "/c": {"file:/d"}, "/d": {"file:/b"}},
			"file:/b, file:/c, file:/d, file:/b"},
		"none": {map[string][]ID{"/a": {"file:/b", "file:/c"}, "/b": {"file:/c"}, "/c": {"file:/d"}, "/d": nil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &State{}
			for _, p := range []string{"/a", "/b", "/c", "/d"} {
				s.Add(&File{Base: Base{After: c.after[p]}, Path: p, Mode: 0o644, Life: Managed})
			}
			err := s.Seal()
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
