package cli

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/adminuser"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// What the unit's two lines run; of a user whom somebody else has changed meanwhile the
// journal tells.
func TestNodePasswordAge(t *testing.T) {
	h := memory.New()
	h.Put(adminuser.Shadow, "operator:x:19000:0:90:7:::\n", 0o640)
	var ran []string
	h.Program("/usr/bin/chage", func(c host.Command) host.Output {
		ran = append(ran, strings.Join(c.Args, " "))
		h.Put(adminuser.Shadow, "operator:x:19000:0:60:7:::\n", 0o640)
		return host.Output{}
	})
	if code, _, stderr := invoke(h, "berth", "node", "password-age", "operator", "root"); code != 0 {
		t.Errorf("code %d: %s", code, stderr)
	}
	if len(ran) != 1 || ran[0] != "--mindays 0 --maxdays 99999 --inactive -1 --expiredate -1 operator" {
		t.Error(ran)
	}
	code, _, stderr := invoke(h, "berth", "node", "password-age", "--back")
	if code != 0 || len(ran) != 1 || !strings.Contains(stderr, "password of operator expires, and that stays") {
		t.Errorf("code %d, ran %q: %s", code, ran, stderr)
	}
}
