package hosttest

import (
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/internal/host"
)

var fileCases = []testCase{
	{"create fails where the name is taken", createTaken},
	{"durable write leaves one file", durableWrite},
	{"durable write replaces leftover and file", durableRewrite},
	{"directories with their parents", mkdirAll},
	{"mkdir mode is not masked", mkdirModes},
	{"links", links},
	{"hard links", hardLinks},
	{"hard link of a link", hardLinkOfLink},
	{"hard link: errors", hardLinkErrors},
	{"rename between hard links", renameHardLinks},
	{"rename", rename},
	{"remove", remove},
	{"a large file in uneven pieces", largeFile},
	{"a file that is too large to be held", hugeFile},
	{"chmod and chown", attributes},
	{"chmod and chown of an open file", openAttributes},
	{"extended attributes", xattrs},
	{"extended attributes: errors", xattrErrors},
	{"durable write with extended attributes", xattrsWritten},
	{"capabilities go with content and owner", capabilities},
	{"change shows in inode or change time", changeShows},
	{"read directory in order", readDir},
	{"read in pieces", readPieces},
	{"only regular files are read", readOthers},
	{"append", appendTo}, {"describe", describe},
	{"closed file", closedFile},
	{"sync", syncErrors},
	{"paths are absolute and clean", badPaths},
	{"missing parent", missingParent},
	{"the root directory", rootDir},
	{"last element is not followed", lastElement},
	{"parents through links of root", parentLinks},
	{"parents through links of others", foreignLinks},
	{"parents through links into the kernel", kernelLinks},
	{"link loop", linkLoop},
	{"values are under proc and sys", notAValue},
}

func createIsPrivate(t *testing.T, h host.Host, dir string, uid int) {
	f, err := h.Create(dir + "/new")
	must(t, err)
	_, err = f.Write([]byte("a"))
	must(t, err)
	_, err = f.Write([]byte("bc"))
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
	info := lstat(t, h, dir+"/new")
	if info.Mode != 0o600 || info.UID != uid || info.Size != 3 || !info.IsRegular() {
		t.Errorf("new file is %+v", info)
	}
	expect(t, h, dir+"/new", "abc")
}

func createTaken(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/file", "x")
	must(t, h.Mkdir(dir+"/dir", 0o755))
	must(t, h.Symlink("nowhere", dir+"/link"))
	for _, name := range []string{"file", "dir", "link"} {
		_, err := h.Create(dir + "/" + name)
		want(t, "create over "+name, err, fs.ErrExist)
		want(t, "mkdir over "+name, h.Mkdir(dir+"/"+name, 0o755), fs.ErrExist)
		want(t, "symlink over "+name, h.Symlink("x", dir+"/"+name), fs.ErrExist)
	}
	expect(t, h, dir+"/file", "x")
}

func durableWrite(t *testing.T, h host.Host, dir string) {
	a := host.Attributes{Mode: 0o640, UID: 12, GID: 34}
	must(t, host.WriteFile(h, dir+"/f", []byte("content"), a))
	info := lstat(t, h, dir+"/f")
	if info.Mode != 0o640 || info.UID != 12 || info.GID != 34 {
		t.Errorf("file is %+v", info)
	}
	expect(t, h, dir+"/f", "content")
	only(t, h, dir, "f")
}

// only checks what is in a directory.
func only(t *testing.T, h host.FS, dir string, names ...string) {
	t.Helper()
	got, err := h.ReadDir(dir)
	must(t, err)
	if diff := cmp.Diff(names, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", dir, diff)
	}
}

func durableRewrite(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "old")
	put(t, h, host.TempName(dir+"/f"), "leftover")
	put(t, h, dir+"/f", "new")
	expect(t, h, dir+"/f", "new")
	only(t, h, dir, "f")
}

func mkdirAll(t *testing.T, h host.Host, dir string) {
	made, err := host.MkdirAll(h, dir+"/a/b/c")
	must(t, err)
	if diff := cmp.Diff([]string{dir + "/a", dir + "/a/b", dir + "/a/b/c"}, made); diff != "" {
		t.Error(diff)
	}
	made, err = host.MkdirAll(h, dir+"/a/b/c")
	must(t, err)
	if len(made) > 0 {
		t.Errorf("made again: %v", made)
	}
	put(t, h, dir+"/file", "")
	if _, err := host.MkdirAll(h, dir+"/file/x"); err == nil {
		t.Error("made a directory under a file")
	}
}

func mkdirModes(t *testing.T, h host.Host, dir string) {
	for _, m := range []fs.FileMode{0o700, 0o755, 0o777, 0o777 | fs.ModeSticky, 0o770 | fs.ModeSetgid} {
		p := dir + "/" + strings.ReplaceAll(m.String(), "/", "")
		must(t, h.Mkdir(p, m))
		if got := lstat(t, h, p).Mode; got != m|fs.ModeDir {
			t.Errorf("mode %v, want %v", got, m|fs.ModeDir)
		}
	}
}

func links(t *testing.T, h host.Host, dir string) {
	must(t, h.Symlink("some/where", dir+"/l"))
	target, err := h.Readlink(dir + "/l")
	must(t, err)
	if info := lstat(t, h, dir+"/l"); target != "some/where" || info.Mode.Type() != fs.ModeSymlink {
		t.Errorf("link to %q, %+v", target, info)
	}
	put(t, h, dir+"/f", "")
	_, err = h.Readlink(dir + "/f")
	want(t, "readlink of a file", err, syscall.EINVAL)
	_, err = h.Readlink(dir + "/none")
	want(t, "readlink of nothing", err, fs.ErrNotExist)
}

func rename(t *testing.T, h host.Host, dir string) {
	must(t, h.Mkdir(dir+"/d", 0o755))
	must(t, h.Mkdir(dir+"/full", 0o755))
	put(t, h, dir+"/full/x", "")
	put(t, h, dir+"/a", "a")
	put(t, h, dir+"/b", "b")
	must(t, h.Rename(dir+"/a", dir+"/b"))
	expect(t, h, dir+"/b", "a")
	must(t, h.Symlink("full/x", dir+"/link"))
	must(t, h.Rename(dir+"/b", dir+"/link"))
	expect(t, h, dir+"/link", "a")
	expect(t, h, dir+"/full/x", "")
	must(t, h.Rename(dir+"/link", dir+"/d/y"))
	want(t, "rename of nothing", h.Rename(dir+"/a", dir+"/c"), fs.ErrNotExist)
	want(t, "file over directory", h.Rename(dir+"/d/y", dir+"/full"), syscall.EISDIR)
	want(t, "directory over file", h.Rename(dir+"/full", dir+"/d/y"), syscall.ENOTDIR)
	want(t, "directory over full one", h.Rename(dir+"/d", dir+"/full"), syscall.ENOTEMPTY)
	want(t, "directory into itself", h.Rename(dir+"/d", dir+"/d/z"), syscall.EINVAL)
	only(t, h, dir, "d", "full")
}

func remove(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "")
	must(t, h.Mkdir(dir+"/d", 0o755))
	put(t, h, dir+"/d/x", "")
	must(t, h.Symlink("d", dir+"/l"))
	want(t, "remove of a full directory", h.Remove(dir+"/d"), syscall.ENOTEMPTY)
	must(t, h.Remove(dir+"/l"))
	must(t, h.Remove(dir+"/f"))
	expect(t, h, dir+"/d/x", "")
	must(t, h.Remove(dir+"/d/x"))
	must(t, h.Remove(dir+"/d"))
	want(t, "remove of nothing", h.Remove(dir+"/d"), fs.ErrNotExist)
	only(t, h, dir)
}

// describe: the names of one directory are what each of them is by itself.
func describe(t *testing.T, h host.Host, dir string) {
	must(t, h.Symlink("f", dir+"/l"))
	must(t, h.Mkdir(dir+"/d", 0o750))
	f, err := h.Create(dir + "/f")
	must(t, err)
	must(t, f.Close())
	names := []string{"l", "none", "f", "d"}
	got, err := h.(host.Describer).Describe(dir, names)
	must(t, err)
	for i, name := range names {
		info, err := h.Lstat(dir + "/" + name)
		if (err != nil) != (got[i] == nil) || err == nil && *got[i] != info {
			t.Errorf("%s is %+v, and by itself %+v %v", name, got[i], info, err)
		}
	}
	for _, none := range []string{dir + "/none", dir + "/f"} {
		if got, err := h.(host.Describer).Describe(none, names); err != nil || slices.ContainsFunc(got, func(i *host.Info) bool { return i != nil }) {
			t.Errorf("in %s is %v, %v", none, got, err)
		}
	}
}

func appendTo(t *testing.T, h host.Host, dir string) {
	log := h.(host.Appender)
	for _, line := range []string{"one\n", "two\n"} {
		w, err := log.Append(dir + "/log")
		must(t, err)
		_, err = io.WriteString(w, line)
		must(t, err)
		must(t, w.Close())
	}
	expect(t, h, dir+"/log", "one\ntwo\n")
	if mode := lstat(t, h, dir+"/log").Mode; mode != 0o600 {
		t.Errorf("mode %v", mode)
	}
	must(t, h.Symlink("log", dir+"/l"))
	_, err := log.Append(dir + "/l")
	want(t, "append through a link", err, syscall.ELOOP)
	_, err = log.Append(dir)
	want(t, "append to a directory", err, syscall.EISDIR)
}

func closedFile(t *testing.T, h host.Host, dir string) {
	f, err := h.Create(dir + "/f")
	must(t, err)
	must(t, f.Close())
	_, err = f.Write([]byte("x"))
	want(t, "write", err, fs.ErrClosed)
	want(t, "chmod", f.Chmod(0o644), fs.ErrClosed)
	want(t, "sync", f.Sync(), fs.ErrClosed)
	want(t, "close", f.Close(), fs.ErrClosed)
}

func syncErrors(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "")
	must(t, h.SyncDir(dir))
	must(t, h.SyncDir("/"))
	must(t, h.SyncFile(dir+"/f"))
	must(t, h.Symlink("f", dir+"/l"))
	want(t, "sync of a file as a directory", h.SyncDir(dir+"/f"), syscall.ENOTDIR)
	want(t, "sync of a directory as a file", h.SyncFile(dir), syscall.EISDIR)
	want(t, "sync of a link", h.SyncFile(dir+"/l"), syscall.ELOOP)
	want(t, "sync of no file", h.SyncFile(dir+"/n"), fs.ErrNotExist)
	want(t, "sync of nothing", h.SyncDir(dir+"/n"), fs.ErrNotExist)
}
