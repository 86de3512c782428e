package machine

import (
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of a file on a disk that the kernel holds nothing of it holds all, soon; what is not
// there, and what is no file, is left out.
func TestReadAhead(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "berth-readahead-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	name := filepath.Join(dir, "program")
	uncached(t, name, 1<<20)
	if held(t, name) == 1<<20 {
		t.Fatal("the kernel holds all of the file from the beginning")
	}
	readAhead(tree{openRoot(t), true}, []string{filepath.Join(dir, "none"), dir, name})
	for end := time.Now().Add(10 * time.Second); held(t, name) < 1<<20; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the kernel holds %d bytes", held(t, name))
		}
	}
}

func openRoot(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// uncached writes a file and has the kernel drop what it holds of it.
func uncached(t *testing.T, name string, size int) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}

// held is how many bytes of a file the kernel holds, by whole pages (mincore(2)).
func held(t *testing.T, name string) int {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	at, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(at) }()
	page := os.Getpagesize()
	pages := make([]byte, (len(at)+page-1)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&at[0])), uintptr(len(at)), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Fatal(errno)
	}
	n := 0
	for _, p := range pages {
		n += int(p&1) * page
	}
	return n
}
