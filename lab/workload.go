package lab

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/berth-dev/berth/lab/internal/build"
	"github.com/berth-dev/berth/lab/internal/cache"
)

// Workload is the path of the static program that the lab's pods run: see
// images/workload. It is built at the first call.
func (l *Lab) Workload(ctx context.Context) (string, error) {
	module := filepath.Join(l.root, "lab")
	key, err := cache.FileKey("1", filepath.Join(module, "images/workload/main.go"))
	if err != nil {
		return "", err
	}
	dir, err := l.cache.Entry(ctx, "workload", key, func(ctx context.Context, dir string) error {
		return l.log.Step("build the workload", func() error { return build.Workload(ctx, module, dir) })
	})
	if err != nil {
		return "", fmt.Errorf("build workload: %w", err)
	}
	return filepath.Join(dir, "workload"), nil
}
