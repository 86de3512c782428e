package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/lab/internal/build"
	"github.com/berth-dev/berth/lab/internal/cache"
)

// Berth compiles berth from the repository at root and returns the layer with
// the program and its units, as an image of AKS carries them. The path is
// empty if the repository has no such program.
func Berth(ctx context.Context, c *cache.Cache, root string) (string, error) {
	tmp, err := os.MkdirTemp(c.Dir, "berth-build-")
	if err != nil {
		return "", fmt.Errorf("create build directory: %w", err)
	}
	defer os.RemoveAll(tmp)
	var built bool
	err = c.Log.Step("build berth", func() (err error) { built, err = build.Berth(ctx, root, tmp); return err })
	if err != nil || !built {
		return "", err
	}
	units, err := filepath.Glob(filepath.Join(root, "packaging/systemd/*.service"))
	if err != nil {
		return "", fmt.Errorf("list units: %w", err)
	}
	program := filepath.Join(tmp, "berth")
	key, err := cache.FileKey("berth 1", append([]string{program}, units...)...)
	if err != nil {
		return "", err
	}
	dir, err := c.Entry(ctx, "layer-berth", key, func(_ context.Context, dir string) error { return fillBerth(dir, program, units) })
	return dir, errors.Join(err, c.Prune("layer-berth", key, 24*time.Hour))
}

func fillBerth(dir, program string, units []string) error {
	err := installAll(dir, map[string]string{
		"opt/azure/containers/aks-node-controller": program,
		"usr/local/bin/berth":                      program,
	})
	if err != nil {
		return err
	}
	for _, u := range units {
		if err := installUnit(dir, u); err != nil {
			return err
		}
	}
	return nil
}

// installUnit puts a unit into the image, and enables it if cloud-init is to
// start it.
func installUnit(dir, unit string) error {
	b, err := os.ReadFile(unit)
	if err != nil {
		return fmt.Errorf("read unit: %w", err)
	}
	name := filepath.Base(unit)
	dest := filepath.Join(dir, systemd, name)
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return fmt.Errorf("create unit directory: %w", err)
	}
	if err := os.WriteFile(dest, b, 0o644); err != nil {
		return fmt.Errorf("install unit: %w", err)
	}
	if !strings.Contains(string(b), "\nWantedBy=cloud-init.target") {
		return nil
	}
	link := systemd + "cloud-init.target.wants/" + name
	err = writeLinks(dir, map[string]string{link: "/etc/systemd/system/" + name})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
