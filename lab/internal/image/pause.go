package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/lab/internal/build"
	"github.com/berth-dev/berth/lab/internal/cache"
	"github.com/berth-dev/berth/lab/internal/proc"
)

// PauseNames are the names under which a prebaked node has the sandbox image.
var PauseNames = []string{"registry.test/pause:1", "mcr.microsoft.com/oss/v2/kubernetes/pause:3.6", "mcr.microsoft.com/oss/kubernetes/pause:3.6"}

// Pause returns a directory with pause.tar, the sandbox image as a docker
// archive, and containerd/, containerd's state directory after the import.
func Pause(ctx context.Context, c *cache.Cache, lab, runtime string) (string, error) {
	key, err := cache.FileKey(fmt.Sprint("1", PauseNames, runtime), filepath.Join(lab, "images/pause/main.go"))
	if err != nil {
		return "", err
	}
	return c.Entry(ctx, "pause", key, func(ctx context.Context, dir string) error {
		return c.Log.Step("import the pause image", func() error { return fillPause(ctx, lab, runtime, dir) })
	})
}

func fillPause(ctx context.Context, lab, runtime, dir string) error {
	if err := build.Pause(ctx, lab, dir); err != nil {
		return err
	}
	program, err := os.ReadFile(filepath.Join(dir, "pause"))
	if err != nil {
		return fmt.Errorf("read pause: %w", err)
	}
	image, err := archive(program)
	if err != nil {
		return fmt.Errorf("pack pause image: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pause.tar"), image, 0o644); err != nil {
		return fmt.Errorf("write pause image: %w", err)
	}
	return importImage(ctx, runtime, dir)
}

// archive packs one program as an image in docker's archive form.
func archive(program []byte) ([]byte, error) {
	layer, err := tarball(map[string][]byte{"pause": program}, "pause")
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/pause"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": PauseNames, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"config.json": config, "layer.tar": layer, "manifest.json": manifest}
	return tarball(files, "config.json", "layer.tar", "manifest.json")
}

func tarball(files map[string][]byte, order ...string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range order {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// importImage lets a containerd of this machine unpack the image, so that
// nodes have it without a step at boot.
func importImage(ctx context.Context, runtime, dir string) error {
	state, err := os.MkdirTemp("/run", "berth-lab-import-")
	if err != nil {
		return fmt.Errorf("create containerd state: %w", err)
	}
	defer os.RemoveAll(state)
	config := filepath.Join(state, "config.toml")
	text := "version = 3\ndisabled_plugins = ['io.containerd.grpc.v1.cri', 'io.containerd.cri.v1.images', 'io.containerd.cri.v1.runtime', 'io.containerd.nri.v1.nri']\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write containerd config: %w", err)
	}
	socket := filepath.Join(state, "s.sock")
	cmd := exec.CommandContext(ctx, filepath.Join(runtime, "containerd"), "--config", config,
		"--root", filepath.Join(dir, "containerd"), "--state", filepath.Join(state, "state"), "--address", socket)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	defer func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }()
	return useContainerd(ctx, filepath.Join(runtime, "ctr"), socket, dir)
}

func useContainerd(ctx context.Context, ctr, socket, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	run := func(args ...string) error {
		cmd := exec.CommandContext(ctx, ctr, append([]string{"--address", socket, "-n", "k8s.io"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("ctr %v: %w: %s", args, err, out)
		}
		return nil
	}
	if err := proc.Poll(ctx, "containerd", func() (bool, error) { err := run("version"); return err == nil, err }); err != nil {
		return err
	}
	if err := run("images", "import", filepath.Join(dir, "pause.tar")); err != nil {
		return err
	}
	for _, name := range PauseNames {
		if err := run("images", "label", name, "io.cri-containerd.image=managed", "io.cri-containerd.pinned=pinned"); err != nil {
			return err
		}
	}
	return nil
}
