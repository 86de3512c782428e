package provision

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// WithUnitLog adds to the failure of a unit what the unit said last: a job's
// result does not tell why. A trial that failed tells that itself.
func WithUnitLog(ctx context.Context, h host.Runner, err error) error {
	u, ok := errors.AsType[*converge.UnitError](err)
	if !ok || is[*converge.TrialError](err) {
		return err
	}
	return fmt.Errorf("%w%s", err, apiserver.LastLogLines(ctx, h, u.Unit))
}
