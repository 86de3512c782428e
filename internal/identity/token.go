package identity

import (
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// tokenID is the public half of a bootstrap token "id.secret": it names the
// token's Secret.
func tokenID(token desired.Secret) string {
	id, _, ok := strings.Cut(token.Reveal(), ".")
	if !ok || len(id) != 6 {
		return "ID"
	}
	return id
}
