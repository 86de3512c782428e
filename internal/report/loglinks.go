package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/host"
)

// logLinks are the names under which support teams look for the log. Targets
// are relative, so that a copy of the tree keeps them.
var logLinks = []struct{ path, target string }{
	{ClusterLog, "aks-node-controller.log"},
	{"/var/log/azure/cluster-provision-cse-output.log", "aks-node-controller.log"},
	{AKSLogDir + "/aks-node-controller.log", "../aks-node-controller.log"},
	{AKSLogDir + "/cluster-provision.log", "../aks-node-controller.log"},
	{AKSLogDir + "/cluster-provision-cse-output.log", "../aks-node-controller.log"},
}

// LinkLogs makes the known names where nothing stands yet.
func LinkLogs(h host.FS) error {
	if _, err := host.MkdirAll(h, AKSLogDir); err != nil {
		return fmt.Errorf("link logs: %w", err)
	}
	var errs []error
	for _, l := range logLinks {
		if err := h.Symlink(l.target, l.path); err != nil && !errors.Is(err, fs.ErrExist) {
			errs = append(errs, fmt.Errorf("link logs: %w", err))
		}
	}
	return errors.Join(errs...)
}

// keptLog is how much of earlier runs' log stays, in bytes.
const keptLog = 1 << 20

// openAppend continues a log file: what is kept of the old one is copied into a
// new one, which takes the name and is then written to.
func openAppend(h host.FS, p string) (io.WriteCloser, error) {
	if err := mkdirs(h, path.Dir(p)); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	old, err := h.ReadFile(p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open log: %w", err)
	}
	tmp := host.TempName(p)
	if err := h.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open log: %w", err)
	}
	f, err := h.Create(tmp)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := begin(h, f, p, lastLines(old, keptLog)); err != nil {
		return nil, fmt.Errorf("open log: %w", errors.Join(err, f.Close()))
	}
	return f, nil
}

// mkdirs makes directories that need not outlive a power cut: a run does not
// wait for the disk to keep its log.
func mkdirs(h host.FS, dir string) error {
	if _, err := h.Lstat(dir); err == nil || dir == "/" {
		return nil
	}
	if err := mkdirs(h, path.Dir(dir)); err != nil {
		return err
	}
	return h.Mkdir(dir, 0o755)
}

func begin(h host.FS, f host.File, p string, old []byte) error {
	if _, err := f.Write(old); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	return host.Commit(h, p)
}

// lastLines is the end of a text, whole lines, at most n bytes.
func lastLines(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	b = b[len(b)-n:]
	return b[bytes.IndexByte(b, '\n')+1:]
}
