package provision

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/internal/host"
)

// restart has the machine start anew in a minute, as published: whoever waits for the
// result has it by then.
func (r *run) restart(ctx context.Context) error {
	r.log.Info("the machine starts anew in a minute, for its GPUs")
	if _, err := r.Host.Run(ctx, host.Command{Path: "shutdown", Args: []string{"-r", "+1"}}); err != nil {
		return fmt.Errorf("start the machine anew: %w", err)
	}
	return nil
}
