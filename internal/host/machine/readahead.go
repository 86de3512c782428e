package machine

import "golang.org/x/sys/unix"

// readAhead has the kernel read files from the disk in as few and as large parts as it can,
// where a program that is started would read them page by page. What can't be read ahead
// says so to whom it starts.
func readAhead(t tree, names []string) {
	for _, name := range names {
		_ = t.regularAt(name, func(fd int, size int64) error {
			defer unix.Close(fd)
			return unix.Fadvise(fd, 0, size, unix.FADV_WILLNEED)
		})
	}
}
