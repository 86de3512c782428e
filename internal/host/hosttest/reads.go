package hosttest

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

func readDir(t *testing.T, h host.Host, dir string) {
	names := []string{"b", "a", "B", ".c", "a.b"}
	for _, n := range names {
		put(t, h, dir+"/"+n, "")
	}
	slices.Sort(names)
	only(t, h, dir, names...)
	_, err := h.ReadDir(dir + "/a")
	want(t, "read of a file as a directory", err, syscall.ENOTDIR)
	_, err = h.ReadDir(dir + "/none")
	want(t, "read of no directory", err, fs.ErrNotExist)
}

func readPieces(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "0123456789")
	f, err := h.Open(dir + "/f")
	must(t, err)
	buf := make([]byte, 4)
	_, err = f.ReadAt(buf, 5)
	must(t, err)
	if string(buf) != "5678" {
		t.Errorf("at 5: %q", buf)
	}
	if n, err := f.ReadAt(buf, 8); n != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("at 8: %d, %v", n, err)
	}
	rest, err := io.ReadAll(f)
	must(t, err)
	if string(rest) != "0123456789" {
		t.Errorf("all: %q", rest)
	}
	must(t, f.Close())
}

func readOthers(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "")
	must(t, h.Symlink("f", dir+"/l"))
	read := map[string]func(string) error{
		"read": func(p string) error { _, err := h.ReadFile(p); return err },
		"open": func(p string) error { _, err := h.Open(p); return err },
	}
	for what, do := range read {
		want(t, what+" of a directory", do(dir), syscall.EISDIR)
		want(t, what+" of a link", do(dir+"/l"), syscall.ELOOP)
		want(t, what+" of nothing", do(dir+"/n"), fs.ErrNotExist)
	}
}
