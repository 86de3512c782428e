package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRemoveTimers(t *testing.T) {
	root := t.TempDir()
	if err := removeTimers(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tree without timers: %v", err)
	}
	names := map[string]bool{ // path → stays
		"usr/lib/systemd/system/dpkg-db-backup.timer":                             false,
		"usr/lib/systemd/system/systemd-tmpfiles-clean.timer":                     false,
		"usr/lib/systemd/system/systemd-tmpfiles-clean.service":                   true,
		"usr/lib/systemd/system/timers.target":                                    true,
		"usr/lib/systemd/system/timers.target.wants/systemd-tmpfiles-clean.timer": false,
		"etc/systemd/system/timers.target.wants/dpkg-db-backup.timer":             false,
		"etc/systemd/system/multi-user.target.wants/cron.service":                 true,
	}
	for name := range names {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink("/elsewhere", path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("usr/lib", filepath.Join(root, "lib")); err != nil {
		t.Fatal(err)
	}
	if err := removeTimers(root); err != nil {
		t.Fatal(err)
	}
	for name, stays := range names {
		if _, err := os.Lstat(filepath.Join(root, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
