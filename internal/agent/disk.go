package agent

import (
	"context"
	"errors"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/datadisk"
	"github.com/berth-dev/berth/internal/host"
)

// attached is how long a disk that was ordered with the machine may take to come.
const attached = 2 * time.Minute

// DataDisk puts kubelet's data on the disk that the configuration speaks of, if it
// does.
func DataDisk(ctx context.Context, h host.Host, c *config.NodeAgent) error {
	if c.Bootstrap == nil || c.Bootstrap.KubeletDataVolumeSize == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, attached, errors.New("it did not come within "+attached.String()))
	defer cancel()
	return datadisk.Ensure(ctx, h, *c.Bootstrap.KubeletDataVolumeSize)
}

// dataDisk comes before kubelet's first credential, which lies on it. A kubelet that
// runs without it goes on so.
func (a *Agent) dataDisk(ctx context.Context) error {
	err := DataDisk(ctx, a.Host, a.config)
	if e, ok := errors.AsType[*datadisk.RunningError](err); ok {
		a.Log.Warn(e.Error(), "hint", e.Hint())
		return nil
	}
	return err
}
