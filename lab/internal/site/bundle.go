package site

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/hostdeps"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// Registry does not exist.
const Registry = "registry.nowhere.test"

// PauseImage is the sandbox image's name at a site without network.
const PauseImage = Registry + "/pause:1"

// Bundle is BundleOf for a configuration that CutOff changed.
func (p *Programs) Bundle(ctx context.Context, l *lab.Lab, dir string, cfg *aksnodeconfigv1.Configuration, images ...string) (map[string]lab.File, error) {
	text, err := nodeconfigutils.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	return p.BundleOf(ctx, l, dir, text, images...)
}

// BundleOf makes a signed bundle for a document whose addresses lead nowhere, with
// the sandbox image and the given ones ("reference=file or layout"), verifies
// it, and returns what a node's disk needs: the bundle and its key. It works in
// dir.
func (p *Programs) BundleOf(ctx context.Context, l *lab.Lab, dir string, text []byte, images ...string) (map[string]lab.File, error) {
	if err := makeKeys(ctx, dir); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
		return nil, err
	}
	create := []string{"bundle", "create", "-f", "config.json", "-o", "site.bundle", "--key", "site.key",
		"--artifact", "kubernetes=" + p.files[p.Kubernetes], "--artifact", "containerd=" + p.files[p.Containerd],
		"--artifact", "runc=" + p.files[p.Runc], "--artifact", "cni-plugins=" + p.files[p.CNI], "--image", PauseImage + "=" + l.PauseArchive()}
	for _, i := range images {
		create = append(create, "--image", i)
	}
	if err := command(ctx, dir, l.Berth(), create...); err != nil {
		return nil, err
	}
	if err := command(ctx, dir, l.Berth(), "bundle", "verify", "site.bundle", "--key", "site.pem"); err != nil {
		return nil, err
	}
	return layBundle(dir)
}

func layBundle(dir string) (map[string]lab.File, error) {
	bundle, err := os.ReadFile(filepath.Join(dir, "site.bundle"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(dir, "site.pem"))
	return map[string]lab.File{
		"/var/lib/berth/bundles/site.bundle": {Content: bundle, Mode: 0o600},
		"/etc/berth/keys.d/site.pem":         {Content: key},
	}, err
}

// makeKeys makes a pair as docs/bundle.md says.
func makeKeys(ctx context.Context, dir string) error {
	if err := hostdeps.Sites(ctx, nil); err != nil {
		return err
	}
	if err := command(ctx, dir, "openssl", "genpkey", "-algorithm", "ed25519", "-out", "site.key"); err != nil {
		return err
	}
	return command(ctx, dir, "openssl", "pkey", "-in", "site.key", "-pubout", "-out", "site.pem")
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", filepath.Base(name), args, err, out)
	}
	return nil
}
