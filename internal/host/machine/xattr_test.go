package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAttributeNames(t *testing.T) {
	for list, want := range map[string][]string{
		"":                               nil,
		"user.a\x00":                     {"user.a"},
		"user.a\x00security.selinux\x00": {"user.a", "security.selinux"},
	} {
		if diff := cmp.Diff(want, attributeNames([]byte(list))); diff != "" {
			t.Errorf("%q: %s", list, diff)
		}
	}
}
