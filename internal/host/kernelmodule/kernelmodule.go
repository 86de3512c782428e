// Package kernelmodule asks what the kernel has, without having it load anything.
package kernelmodule

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// errNoList is for a kernel that does not tell what is built into it.
var errNoList = errors.New("the machine has no list of what is built into its kernel")

// Loaded says whether a module is loaded, or built in. The error is for what can't be
// known without having it loaded.
func Loaded(root, module string) (bool, error) {
	if _, err := os.Stat(path.Join(root, "sys/module", module)); err == nil {
		return true, nil // those that are built in are here if they have parameters
	}
	text, err := os.ReadFile(path.Join(root, "proc/modules"))
	if err != nil || strings.Contains("\n"+string(text), "\n"+module+" ") {
		return true, nil
	}
	release, err := os.ReadFile(path.Join(root, "proc/sys/kernel/osrelease"))
	if err != nil {
		return false, err
	}
	for _, dir := range []string{"usr/lib/modules", "lib/modules"} {
		list, err := os.ReadFile(path.Join(root, dir, strings.TrimSpace(string(release)), "modules.builtin"))
		if err == nil {
			return strings.Contains(string(list), "/"+module+".ko"), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return false, errNoList
}

// Missing says that an error of a netlink socket is about a part that the kernel lacks and
// could not load: it knows no such protocol, or of it no such family or subsystem, for which
// nfnetlink answers EINVAL.
func Missing(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EINVAL)
}
