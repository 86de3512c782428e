package selfupdate

import (
	"context"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Reverter ends a trial: by going back, or by confirming it.
type Reverter interface {
	Revert(context.Context) (string, error)
	Confirm(context.Context, ...desired.Owner) (desired.Owner, error)
}

// Revert is to be called when the time of a trial is over. It goes back, and says what was
// done, unless what is on trial is an agent that can't speak for itself and has stayed up.
// failed is told where that can't be seen.
func Revert(ctx context.Context, h host.Host, r Reverter, failed func(error)) (string, error) {
	good, err := TimeIsOver(ctx, h)
	if err != nil {
		failed(err)
	}
	if err != nil || !good {
		return r.Revert(ctx)
	}
	_, err = r.Confirm(ctx, desired.OwnerBerth)
	return "", err
}
