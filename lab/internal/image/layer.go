package image

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/berth-dev/berth/lab/internal/cache"
)

//go:embed all:layers
var layers embed.FS

// layer is a tree of files and links that is put over the base.
type layer struct {
	name  string
	links map[string]string                           // path → target
	fill  func(ctx context.Context, dir string) error // adds what is not embedded
	from  string                                      // what fill depends on, for the cache key
}

const systemd = "etc/systemd/system/"

// common is wanted by every machine.
var common = layer{name: "common", links: merged(map[string]string{
	systemd + "multi-user.target.wants/systemd-networkd.service":                 "/lib/systemd/system/systemd-networkd.service",
	systemd + "sockets.target.wants/systemd-networkd.socket":                     "/lib/systemd/system/systemd-networkd.socket",
	systemd + "dbus-org.freedesktop.network1.service":                            "/lib/systemd/system/systemd-networkd.service",
	systemd + "network-online.target.wants/systemd-networkd-wait-online.service": "/lib/systemd/system/systemd-networkd-wait-online.service",
	systemd + "multi-user.target.wants/walinuxagent.service":                     "/etc/systemd/system/walinuxagent.service",
}, masked(systemd, unused...), masked(generators, "systemd-cryptsetup-generator", "systemd-gpt-auto-generator",
	"systemd-hibernate-resume-generator", "systemd-integritysetup-generator", "systemd-rc-local-generator",
	"systemd-run-generator", "systemd-system-update-generator", "systemd-veritysetup-generator"))}

// unused are units of the distribution that no machine of the lab needs, and generators in
// common those that find nothing: systemd runs each of them at a boot and at a reload, which
// takes seconds on an emulated machine.
var unused = []string{
	"systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount", "proc-sys-fs-binfmt_misc.mount",
	"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount",
	"systemd-pstore.service", "e2scrub_all.service", "e2scrub_reap.service", "apt-daily.service", "apt-daily-upgrade.service",
}

const generators = "etc/systemd/system-generators/"

// nspawn turns off what only a machine of its own can do.
var nspawn = layer{name: "nspawn", links: merged(map[string]string{
	systemd + "sysinit.target.wants/cgroup-rw.service": "/etc/systemd/system/cgroup-rw.service",
}, masked(systemd, "systemd-udevd.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket",
	"systemd-udev-trigger.service", "systemd-udev-settle.service", "systemd-resolved.service"))}

// masked are links to nothing in a directory.
func masked(dir string, names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[dir+n] = "/dev/null"
	}
	return out
}

func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, some := range all {
		maps.Copy(out, some)
	}
	return out
}

// build returns the layer's directory in the cache.
func (l layer) build(ctx context.Context, c *cache.Cache) (string, error) {
	key, err := l.key()
	if err != nil {
		return "", err
	}
	return c.Entry(ctx, "layer-"+l.name, key, func(ctx context.Context, dir string) error {
		if err := l.copyEmbedded(dir); err != nil {
			return err
		}
		if err := writeLinks(dir, l.links); err != nil {
			return err
		}
		if l.fill == nil {
			return nil
		}
		return l.fill(ctx, dir)
	})
}

func (l layer) key() (string, error) {
	parts := [][]byte{[]byte(l.from), []byte(fmt.Sprint(l.links))}
	err := fs.WalkDir(layers, "layers/"+l.name, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := layers.ReadFile(p)
		parts = append(parts, []byte(p), b)
		return err
	})
	return cache.Key(parts...), err
}

func (l layer) copyEmbedded(dir string) error {
	root := "layers/" + l.name
	return fs.WalkDir(layers, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dest := filepath.Join(dir, strings.TrimPrefix(p, root))
		if d.IsDir() {
			return os.MkdirAll(dest, 0o755)
		}
		b, err := layers.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(dest, b, 0o644)
	})
}

func writeLinks(dir string, links map[string]string) error {
	paths := make([]string, 0, len(links))
	for p := range links {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	for _, p := range paths {
		dest := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
			return fmt.Errorf("create layer directory: %w", err)
		}
		if err := os.Symlink(links[p], dest); err != nil {
			return fmt.Errorf("link in layer: %w", err)
		}
	}
	return nil
}
