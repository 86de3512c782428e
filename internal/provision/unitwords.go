package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// wordsBudget bounds the look at the journal.
const wordsBudget = 3 * time.Second

// inUnitsWords adds to the failure of a unit what the unit said last: a job's
// result does not tell why.
func inUnitsWords(ctx context.Context, h host.Runner, err error) error {
	u, ok := errors.AsType[*converge.UnitError](err)
	if !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wordsBudget)
	defer cancel()
	return fmt.Errorf("%w%s", err, apiserver.LastWords(ctx, h, u.Unit))
}
