// Package netns makes a lab's network namespace and lets this process act in it.
package netns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Bridge is the name of the bridge in every lab's namespace.
const Bridge = "lab0"

// bridgeAddress is the bridge's own. One that it is not given a bridge takes
// from its ports, the lowest, and changes as they come and go: whoever knows
// the old one reaches nothing, for half a minute and more.
const bridgeAddress = "02:00:0a:63:00:01"

// Namespace is a named network namespace under /run/netns.
type Namespace string

// Path is the file that holds the namespace open.
func (n Namespace) Path() string { return "/run/netns/" + string(n) }

// Exists reports whether the namespace is there.
func (n Namespace) Exists() bool {
	_, err := os.Stat(n.Path())
	return err == nil
}

// Create makes the namespace with a bridge that holds gateway.
func (n Namespace) Create(ctx context.Context, gateway netip.Prefix) error {
	if err := run(ctx, "ip", "netns", "add", string(n)); err != nil {
		return err
	}
	lines := []string{
		"link set lo up",
		"link add " + Bridge + " address " + bridgeAddress + " type bridge forward_delay 0",
		"addr add " + gateway.String() + " dev " + Bridge,
		"link set " + Bridge + " up",
	}
	for _, l := range lines {
		if err := n.IP(ctx, strings.Fields(l)...); err != nil {
			return err
		}
	}
	return n.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
}

// Delete removes the namespace; its devices go with it.
func (n Namespace) Delete(ctx context.Context) error {
	if !n.Exists() {
		return nil
	}
	return run(ctx, "ip", "netns", "del", string(n))
}

// IP runs iproute2's ip in the namespace.
func (n Namespace) IP(ctx context.Context, args ...string) error {
	return run(ctx, "ip", append([]string{"-n", string(n)}, args...)...)
}

// DeleteLink removes a device; if it is one of a pair, its peer goes, too,
// wherever that is. No such device is no error.
func (n Namespace) DeleteLink(ctx context.Context, device string) error {
	if !n.hasLink(device) {
		return nil
	}
	err := n.IP(ctx, "link", "del", device)
	if !n.hasLink(device) { // it may have gone by itself meanwhile
		return nil
	}
	return err
}

func (n Namespace) hasLink(device string) bool {
	return n.Do(func() error {
		_, err := net.InterfaceByName(device)
		return err
	}) == nil
}

// Command is an exec.Cmd that runs in the namespace. nsenter replaces itself,
// so the process id is the command's own. (`ip netns exec` would also hide
// /sys/fs/cgroup.)
func (n Namespace) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + n.Path(), "--", name}, args...)...)
}

// Do calls f on a thread that is in the namespace. Sockets that f opens stay
// there. f must not start goroutines that open sockets.
func (n Namespace) Do(f func() error) error {
	errs := make(chan error, 1)
	go func() {
		// The thread is not unlocked: it dies with the goroutine rather than
		// go back to the scheduler in the wrong namespace.
		runtime.LockOSThread()
		if err := n.enter(); err != nil {
			errs <- err
			return
		}
		errs <- f()
	}()
	return <-errs
}

func (n Namespace) enter() error {
	f, err := os.Open(n.Path())
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", n, err)
	}
	return nil
}

// Dial connects to an IP address from inside the namespace.
func (n Namespace) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := n.Do(func() (err error) {
		// FallbackDelay < 0: no second goroutine, which would be elsewhere.
		conn, err = (&net.Dialer{FallbackDelay: -1}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens on an IP address inside the namespace.
func (n Namespace) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var l net.Listener
	err := n.Do(func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(ctx, network, address)
		return err
	})
	return l, err
}

// ListenPacket is Listen for datagrams.
func (n Namespace) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	var c net.PacketConn
	err := n.Do(func() (err error) {
		c, err = (&net.ListenConfig{}).ListenPacket(ctx, network, address)
		return err
	})
	return c, err
}

func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
