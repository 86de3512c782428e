package lab

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/berth-dev/berth/lab/internal/build"
)

// KubeletBefore is the path of a kubelet of the minor before the control plane's: see
// images/k8s-before. It is built at the first call, which takes minutes.
func (l *Lab) KubeletBefore(ctx context.Context) (string, error) {
	dir, err := build.KubeletBefore(ctx, l.cache, filepath.Join(l.root, "lab"))
	if err != nil {
		return "", fmt.Errorf("build the kubelet of the minor before: %w", err)
	}
	return filepath.Join(dir, "kubelet"), nil
}
