package serve

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// BlackHole listens (with its Listen method, in the namespace of the caller)
// and drops every packet without an answer: a client's connect neither succeeds
// nor is refused. It lasts until the listener is closed.
func BlackHole() *net.ListenConfig {
	c := &net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) { set = dropAll(int(fd)) })
		return errors.Join(err, set)
	}}
	// Go's default, multipath TCP, takes no socket filter.
	c.SetMultipathTCP(false)
	return c
}

// dropAll attaches a filter that keeps 0 bytes of every packet. It runs before
// the kernel answers a SYN.
func dropAll(fd int) error {
	drop := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
	program := unix.SockFprog{Len: 1, Filter: &drop}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		return fmt.Errorf("attach drop filter: %w", err)
	}
	return nil
}
