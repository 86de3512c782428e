package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// WithTree puts lower directories together and calls f with the directory where
// they are to be seen. What f writes there is gone afterwards. scratch is a
// directory of a disk that can hold what f writes.
func WithTree(lowers []string, scratch string, f func(root string) error) (err error) {
	dir, err := os.MkdirTemp(scratch, "tree-")
	if err != nil {
		return fmt.Errorf("create mount point: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, upper, work := filepath.Join(dir, "root"), filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	for _, d := range []string{root, upper, work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return fmt.Errorf("create mount point: %w", err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(lowers, ":"), upper, work)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount image: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Unmount(root, unix.MNT_DETACH)) }()
	return f(root)
}
