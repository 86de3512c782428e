package provision

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/internal/component/swap"
	swapkind "github.com/berth-dev/berth/internal/converge/kind/swap"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// RestoreSwap makes the swap file that the last run wrote down where it has gone: a
// resource disk may be a new one at each boot.
func RestoreSwap(ctx context.Context, h host.Host) error {
	s, err := writtenSwap(h)
	if err == nil {
		err = swapkind.Restore(ctx, h, s)
	}
	if err == nil {
		return nil
	}
	return &exitcode.Error{Number: exitcode.SwapFile, During: "make the swap file", Err: err,
		Remedy: "Look at what is at the path and how much room its disk has; apply or provision writes " + swap.SettingsFile + " again."}
}

func writtenSwap(h host.FS) (*desired.Swap, error) {
	text, err := h.ReadFile(swap.SettingsFile)
	if err != nil {
		return nil, fmt.Errorf("read swap settings: %w", err)
	}
	return swap.Read(text)
}
