// Package survey reads what the kernel tells of the machine that the program runs on
// and what is in no file of host.FS: space, sockets, routes, addresses, packet filter.
// It changes nothing, and loads no kernel module by asking.
package survey

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Machine is the machine that the program runs on, in its network namespace.
type Machine struct{}

// Space is the room of a file system, in bytes and in files. Free is what is left for
// everybody but root's reserve.
type Space struct {
	Free, Total           uint64
	FreeFiles, TotalFiles uint64
}

// Space is that of the file system that holds a path, or would hold it.
func (Machine) Space(p string) (Space, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(p, &st)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || p == "/" {
			return Space{}, &fs.PathError{Op: "statfs", Path: p, Err: err}
		}
		p = path.Dir(p)
	}
	size := uint64(st.Bsize)
	return Space{Free: st.Bavail * size, Total: st.Blocks * size, FreeFiles: st.Ffree, TotalFiles: st.Files}, nil
}

// Address is one of the machine's.
type Address struct {
	Interface string
	// Prefix is the address with the length of its network.
	Prefix netip.Prefix
}

// Addresses are those of all interfaces that are up, but not of the loopback.
func (Machine) Addresses() ([]Address, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var out []Address
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				out = append(out, Address{i.Name, p})
			}
		}
	}
	return out, nil
}

// Routes are those of the main table.
func (Machine) Routes() ([]Route, error) {
	four, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, err
	}
	six, err := os.ReadFile("/proc/net/ipv6_route")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
		return nil, err
	}
	return append(routes4(string(four)), routes6(string(six))...), nil
}

// Listeners are the TCP sockets that listen.
func (Machine) Listeners() ([]Listener, error) {
	four, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return nil, err
	}
	six, err := os.ReadFile("/proc/net/tcp6")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return append(listeners(string(four)), listeners(string(six))...), nil
}
