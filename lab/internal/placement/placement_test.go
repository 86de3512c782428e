package placement

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSpread(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if err := Spread(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := Spread(dir + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	flags, err := unix.IoctlGetInt(int(d.Fd()), unix.FS_IOC_GETFLAGS)
	if st.Type == unix.EXT4_SUPER_MAGIC && (err != nil || flags&topOfHierarchy == 0) {
		t.Errorf("flags %#x, %v", flags, err)
	}
}
