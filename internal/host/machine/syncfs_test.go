package machine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

func TestSyncFS(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	s := h.(host.Syncer)
	if err := s.SyncFS("/"); err != nil {
		t.Error(err)
	}
	if err := s.SyncFS("/file"); err == nil {
		t.Error("a file is no directory")
	}
	if err := s.SyncFS("/nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
