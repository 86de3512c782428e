package lab

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/berth-dev/berth/lab/internal/build"
)

// CoreDNS is the path of the name server that nodes run: see images/coredns. It is
// built at the first call, which takes half a minute.
func (l *Lab) CoreDNS(ctx context.Context) (string, error) {
	dir, err := build.CoreDNS(ctx, l.cache, filepath.Join(l.root, "lab"))
	if err != nil {
		return "", fmt.Errorf("build CoreDNS: %w", err)
	}
	return filepath.Join(dir, "coredns"), nil
}
