package azure

import (
	"fmt"

	"github.com/berth-dev/berth/internal/exitcode"
)

// failed is a token that was not obtained, and what to check.
func failed(during, remedy string, err error) error {
	return &exitcode.Error{Number: exitcode.Credential, During: during, Remedy: remedy, Err: fmt.Errorf("%s: %w", during, err)}
}
