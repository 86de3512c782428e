package identity

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/apiserver"
)

// Who may not ask for a certificate is told what to do for what it asks with.
func TestForbiddenRemedy(t *testing.T) {
	for want, o := range map[string]order{
		"system:node-bootstrapper": {access: apiserver.Access{Token: "abcdef.0123456789abcdef"}},
		"berth rbac prints":        {access: apiserver.Access{Certificate: []byte("c")}},
		"--object-id":              {access: apiserver.Access{Token: "of Entra"}, azure: true},
	} {
		if got := o.forbiddenHere(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
