package lab

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/berth-dev/berth/lab/internal/build"
)

// Snapshotter is the path of a snapshotter that containerd reaches by a socket: see
// images/runtime/snapshotter. It is built at the first call.
func (l *Lab) Snapshotter(ctx context.Context) (string, error) {
	dir, err := build.Snapshotter(ctx, l.cache, filepath.Join(l.root, "lab"))
	if err != nil {
		return "", fmt.Errorf("build the snapshotter: %w", err)
	}
	return filepath.Join(dir, "snapshotter"), nil
}
