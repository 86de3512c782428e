package locallink

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAddresses: they are there and can be listened at, twice over, and go; it does
// not matter whether the kernel has dummy interfaces.
func TestAddresses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal("no network of its own:", err)
	}
	want := []netip.Addr{netip.MustParseAddr("169.254.10.10"), netip.MustParseAddr("169.254.10.11")}
	for range 2 {
		if err := (Network{}).Put("localdns", want); err != nil {
			t.Fatal(err)
		}
	}
	if have := own(t); !slices.Contains(have, want[0]) || !slices.Contains(have, want[1]) {
		t.Errorf("the machine has %v", have)
	}
	l, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(want[1], 53)))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for range 2 {
		if err := (Network{}).Remove("localdns", want); err != nil {
			t.Fatal(err)
		}
	}
	if have := own(t); slices.Contains(have, want[0]) || slices.Contains(have, want[1]) {
		t.Errorf("the machine still has %v", have)
	}
}

func own(t *testing.T) (out []netip.Addr) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		out = append(out, netip.MustParsePrefix(a.String()).Addr())
	}
	return out
}
