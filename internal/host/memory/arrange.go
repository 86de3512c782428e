package memory

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/internal/host"
)

// skeleton is what a distribution has before anybody comes.
func (h *Host) skeleton() {
	for _, d := range []string{
		"/dev", "/etc/systemd/system", "/home", "/opt", "/proc/sys/kernel/random", "/root", "/run", "/srv", "/sys", "/tmp",
		"/usr/bin", "/usr/sbin", "/usr/lib/systemd/system", "/usr/local/bin", "/usr/local/sbin",
		"/var/lib", "/var/log", "/var/cache", "/var/tmp",
	} {
		h.dirs(d)
	}
	for _, l := range []string{"bin", "sbin", "lib"} {
		h.install("/"+l, &inode{mode: modeLink | 0o777, target: "usr/" + l})
	}
	h.install("/dev/null", &inode{mode: fs.ModeDevice | fs.ModeCharDevice | 0o666})
}

// install puts an inode at a path, durable, over whatever is there.
func (h *Host) install(p string, n *inode) {
	d, name := h.dirs(path.Dir(p)), path.Base(p)
	h.commitWhere(func(o *nameOp) bool { return o.touchesName(d, name) })
	fresh := h.newInode(n.mode)
	fresh.dev = d.dev
	if n.pseudo {
		fresh.dev = kernel
	}
	fresh.uid, fresh.gid, fresh.content, fresh.target, fresh.pseudo = n.uid, n.gid, n.content, n.target, n.pseudo
	fresh.save()
	d.attach(name, fresh)
	d.durable[name] = fresh
}

// dirs makes a directory and its parents, durable; it follows links.
func (h *Host) dirs(p string) *inode {
	if n, err := h.walkDir(p, false); err == nil {
		return n
	}
	parent := h.dirs(path.Dir(p))
	n := h.newInode(modeDir | 0o755)
	n.dev = parent.dev
	parent.attach(path.Base(p), n)
	parent.durable[path.Base(p)] = n
	return n
}

// Put makes a file with its parents, durable and owned by root. It replaces what
// is there. A mode of directory type makes a directory.
func (h *Host) Put(p, content string, mode fs.FileMode) {
	h.PutOwned(p, content, host.Attributes{Mode: mode})
}

// PutOwned is Put with an owner.
func (h *Host) PutOwned(p, content string, a host.Attributes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.install(p, &inode{mode: a.Mode, uid: a.UID, gid: a.GID, content: []byte(content)})
}

// PutDir makes a directory with its parents, durable, mode 0755.
func (h *Host) PutDir(p string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirs(p)
}

// PutLink makes a link, durable and owned by uid.
func (h *Host) PutLink(target, p string, uid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.install(p, &inode{mode: modeLink | 0o777, uid: uid, gid: uid, target: target})
}

// PutSpecial makes what is neither a file, a directory nor a link: fs.ModeNamedPipe,
// fs.ModeSocket or a device.
func (h *Host) PutSpecial(p string, mode fs.FileMode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.install(p, &inode{mode: mode})
}

// Overwrite changes what a file holds in place and sets its time of modification
// back; it panics where there is none.
func (h *Host) Overwrite(p, content string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.find(p)
	if err != nil {
		panic(pathError("overwrite", p, err))
	}
	n.content, n.ctime = []byte(content), h.tick()
	n.save()
}

// SetImmutable sets or clears the attribute that keeps even root from changing
// what is at a path (chattr +i). A path that is not there panics.
func (h *Host) SetImmutable(p string, immutable bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.find(p)
	if err != nil {
		panic(pathError("chattr", p, err))
	}
	n.fixed, n.ctime = immutable, h.tick()
}

// Tree describes every path below the given directories ("/" if none), except
// kernel values: path → mode, owner, extended attributes and
// content or target, as text that is equal
// where the files are. Times and inodes do not count.
func (h *Host) Tree(dirs ...string) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(dirs) == 0 {
		dirs = []string{"/"}
	}
	out := map[string]string{}
	for _, d := range dirs {
		if n, err := h.find(d); err == nil {
			n.each(d, func(p string, n *inode) {
				if !n.pseudo {
					out[p] = describe(n)
				}
			})
		}
	}
	return out
}

func describe(n *inode) string {
	head := fmt.Sprintf("%s %d:%d", n.mode, n.uid, n.gid)
	for _, name := range sortedKeys(n.xattrs) {
		head += fmt.Sprintf(" %s=%q", name, n.xattrs[name])
	}
	switch {
	case n.mode.IsDir():
		return head
	case n.isLink():
		return head + " -> " + n.target
	}
	return head + " " + text(n.content)
}

// text is the content itself where a diff of it can be read.
func text(b []byte) string {
	if len(b) <= 16<<10 && utf8.Valid(b) && !strings.ContainsRune(string(b), 0) {
		return string(b)
	}
	return fmt.Sprintf("%d bytes sha256:%x", len(b), sha256.Sum256(b))
}
