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

// keptLog is how much of earlier runs' log stays for certain, in bytes; twice as
// much may.
const keptLog = 1 << 20

// openAppend continues a log file. One that has grown far beyond what is kept is
// cut first, once in a long while: a file that others follow shall stay the same.
func openAppend(h host.FS, p string) (io.WriteCloser, error) {
	a, ok := h.(host.Appender)
	if !ok {
		return nil, fmt.Errorf("open log: %w", errors.ErrUnsupported)
	}
	if err := errors.Join(mkdirs(h, path.Dir(p)), shorten(h, p)); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	f, err := a.Append(p)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := readable(h, p); err != nil {
		return nil, fmt.Errorf("open log: %w", errors.Join(err, f.Close()))
	}
	return f, nil
}

// readable lets everybody read the log: it holds no secrets.
func readable(h host.FS, p string) error {
	info, err := h.Lstat(p)
	if err != nil || info.Mode.Perm() == 0o644 {
		return err
	}
	return h.Chmod(p, 0o644)
}

// shorten replaces a log of twice the length that is kept by its end.
func shorten(h host.FS, p string) error {
	info, err := h.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size <= 2*keptLog {
		return nil
	}
	if err != nil {
		return err
	}
	old, err := h.ReadFile(p)
	if err != nil {
		return err
	}
	tmp := host.TempName(p)
	if err := h.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := h.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(lastLines(old, keptLog))
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, h.Remove(tmp))
	}
	return host.Commit(h, p)
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
	if err := h.Mkdir(dir, 0o755); !errors.Is(err, fs.ErrExist) { // the guest agent makes them, too
		return err
	}
	return nil
}

// lastLines is the end of a text, whole lines, at most n bytes.
func lastLines(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	b = b[len(b)-n:]
	return b[bytes.IndexByte(b, '\n')+1:]
}
