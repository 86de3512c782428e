package image

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/lab/internal/cache"
)

// Flavour says what an image carries.
type Flavour string

// The flavours.
const (
	Prebaked Flavour = "prebaked" // containerd, CNI plugins, kubelet and the pause image
	Bare     Flavour = "bare"     // the distribution only
)

// Lowers returns the overlay lower directories of an nspawn node, uppermost
// first.
func Lowers(ctx context.Context, c *cache.Cache, f Flavour, p Programs) ([]string, error) {
	base, err := Base(ctx, c)
	if err != nil {
		return nil, err
	}
	return stack(ctx, c, base, f, p, nspawn)
}

// MachineLowers is Lowers for a machine with its own kernel: nothing is
// masked, and /boot holds vmlinuz and an initramfs.
func MachineLowers(ctx context.Context, c *cache.Cache, f Flavour, p Programs) ([]string, error) {
	base, err := KernelBase(ctx, c)
	if err != nil {
		return nil, err
	}
	return stack(ctx, c, base, f, p)
}

func stack(ctx context.Context, c *cache.Cache, base string, f Flavour, p Programs, more ...layer) ([]string, error) {
	ls := append([]layer{common}, more...)
	switch f {
	case Prebaked:
		ls = append(ls, prebaked(p))
	case Bare:
	default:
		return nil, fmt.Errorf("unknown image flavour %q", f)
	}
	dirs := []string{base}
	for _, l := range ls {
		dir, err := l.build(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("build layer %s: %w", l.name, err)
		}
		dirs = append([]string{dir}, dirs...)
	}
	return dirs, nil
}
