package host

import (
	"path"
	"strings"
	"syscall"
)

// SearchPath is the PATH of every program that berth runs, and where a command
// without a slash is looked up.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// kernelTrees are file systems that are not files: berth follows no link into
// them.
var kernelTrees = []string{"/proc", "/sys", "/dev"}

// InKernelTree says whether a path lies in /proc, /sys or /dev.
func InKernelTree(p string) bool {
	for _, t := range kernelTrees {
		if p == t || strings.HasPrefix(p, t+"/") {
			return true
		}
	}
	return false
}

// IsValue says whether a path can be written as a value: below /proc or /sys, or
// where the kernel and the console take messages.
func IsValue(p string) bool {
	return strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/") || p == "/dev/kmsg" || p == "/dev/console"
}

// LeadsAstray says whether a link that turns path from into path to is one that
// leads into a file system of the kernel. Links inside those are theirs.
func LeadsAstray(from, to string) bool { return InKernelTree(to) && !InKernelTree(from) }

// Splice is the path that results where a link in directory dir is replaced by
// its target; rest is what follows the link. dir must hold no link itself, so
// that ".." means what the kernel means by it.
func Splice(dir, target, rest string) string {
	if !path.IsAbs(target) {
		target = dir + "/" + target
	}
	return path.Join("/", target, rest)
}

// CheckPath refuses a path that is not absolute and clean: EINVAL.
func CheckPath(p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0) {
		return syscall.EINVAL
	}
	return nil
}
