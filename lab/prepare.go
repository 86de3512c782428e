package lab

import (
	"context"
	"errors"

	"github.com/berth-dev/berth/lab/internal/hostdeps"
	"github.com/berth-dev/berth/lab/internal/image"
)

// Prepare installs and builds whatever a lab and its machines may need and the
// cache does not have, but starts nothing.
func Prepare(ctx context.Context, c Config) error {
	if err := c.setDefaults(); err != nil {
		return err
	}
	l, err := newLab(c)
	if err != nil {
		return err
	}
	if err := l.prepare(ctx); err != nil {
		return err
	}
	if err := errors.Join(hostdeps.VMs(ctx, l.log), hostdeps.Ignition(ctx, l.log)); err != nil {
		return err
	}
	if _, err := image.KernelBase(ctx, l.cache); err != nil {
		return err
	}
	_, err = l.Workload(ctx)
	_, dnsErr := l.CoreDNS(ctx)
	_, kubeletErr := l.KubeletBefore(ctx)
	return errors.Join(err, dnsErr, kubeletErr)
}
