package machine

import (
	"bytes"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxXattr is the kernel's limit for the names of a file's attributes together,
// and for the value of one (XATTR_LIST_MAX and XATTR_SIZE_MAX, xattr(7)).
const maxXattr = 64 << 10

// byHandle runs do with a path of the kernel's for the file itself, links
// included: for calls that take no directory and would follow a link.
func byHandle(dir int, name string, do func(p string) error) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do("/proc/self/fd/" + strconv.Itoa(fd))
}

// Xattrs implements host.FS.
func (t tree) Xattrs(p string) (all map[string][]byte, err error) {
	err = t.at("listxattr", p, func(dir int, name string) error {
		return byHandle(dir, name, func(p string) error {
			all, err = xattrs(p)
			return err
		})
	})
	return all, err
}

func xattrs(p string) (map[string][]byte, error) {
	n, err := unix.Listxattr(p, nil)
	if errors.Is(err, unix.ENOTSUP) || err == nil && n == 0 { // as most files: nothing to make room for
		return map[string][]byte{}, nil
	}
	if err != nil {
		return nil, err
	}
	buf := make([]byte, maxXattr)
	if n, err = unix.Listxattr(p, buf); err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, name := range attributeNames(buf[:n]) {
		n, err := unix.Getxattr(p, name, buf)
		if errors.Is(err, unix.ENODATA) { // taken away meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		all[name] = bytes.Clone(buf[:n])
	}
	return all, nil
}

// attributeNames reads a list of listxattr(2). It may hold none though there was room to be
// made for some: overlayfs counts its own, and does not list them.
func attributeNames(list []byte) (names []string) {
	for name := range bytes.SplitSeq(list, []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	return names
}

// SetXattr implements host.FS.
func (t tree) SetXattr(p, attribute string, value []byte) error {
	return t.at("setxattr", p, func(dir int, name string) error {
		return byHandle(dir, name, func(p string) error { return unix.Setxattr(p, attribute, value, 0) })
	})
}
