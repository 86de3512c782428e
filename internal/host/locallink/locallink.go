// Package locallink gives the machine addresses that only itself and its pods reach.
package locallink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Network is that of the network namespace that the program runs in.
type Network struct{}

// loopback takes the addresses where the kernel has no dummy interfaces.
const loopback = "lo"

// Put makes a dummy interface of a name that is up and has addresses. It may be there
// already.
func (Network) Put(name string, addresses []netip.Addr) error {
	return with(func(c *netlink.Conn) error {
		err := add(c, name)
		switch {
		case errors.Is(err, unix.EOPNOTSUPP):
			name = loopback
		case err != nil && !errors.Is(err, unix.EEXIST):
			return fmt.Errorf("make interface %s: %w", name, err)
		}
		for _, a := range addresses {
			if err := address(c, unix.RTM_NEWADDR, netlink.Create|netlink.Replace, name, a); err != nil {
				return fmt.Errorf("give %s to interface %s: %w", a, name, err)
			}
		}
		return nil
	})
}

// Remove takes the interface away, or its addresses where they are elsewhere. Nothing
// there is no error.
func (Network) Remove(name string, addresses []netip.Addr) error {
	return with(func(c *netlink.Conn) error {
		if link, err := net.InterfaceByName(name); err == nil {
			return remove(c, link)
		}
		for _, a := range addresses {
			err := address(c, unix.RTM_DELADDR, 0, loopback, a)
			if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return fmt.Errorf("take %s from interface %s: %w", a, loopback, err)
			}
		}
		return nil
	})
}

func with(do func(*netlink.Conn) error) (err error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return fmt.Errorf("open the network: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return do(c)
}

// add makes a dummy interface, and sets it up.
func add(c *netlink.Conn, name string) error {
	attributes := netlink.NewAttributeEncoder()
	attributes.String(unix.IFLA_IFNAME, name)
	attributes.Nested(unix.IFLA_LINKINFO, func(info *netlink.AttributeEncoder) error {
		info.String(unix.IFLA_INFO_KIND, "dummy")
		return nil
	})
	message := linkMessage(0)
	binary.NativeEndian.PutUint32(message[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(message[12:], unix.IFF_UP)
	return execute(c, unix.RTM_NEWLINK, netlink.Create|netlink.Excl, message, attributes)
}

func remove(c *netlink.Conn, link *net.Interface) error {
	err := execute(c, unix.RTM_DELLINK, 0, linkMessage(link.Index), netlink.NewAttributeEncoder())
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete interface %s: %w", link.Name, err)
	}
	return nil
}

// linkMessage is a struct ifinfomsg that names a link by its index.
func linkMessage(index int) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	return b
}

// address changes an address of an interface: a struct ifaddrmsg, and the address as
// the interface's own.
func address(c *netlink.Conn, kind netlink.HeaderType, flags netlink.HeaderFlags, name string, a netip.Addr) error {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	message := make([]byte, unix.SizeofIfAddrmsg)
	message[0], message[1] = unix.AF_INET, byte(a.BitLen())
	if a.Is6() {
		message[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(message[4:], uint32(link.Index))
	attributes := netlink.NewAttributeEncoder()
	attributes.Bytes(unix.IFA_LOCAL, a.AsSlice())
	attributes.Bytes(unix.IFA_ADDRESS, a.AsSlice())
	return execute(c, kind, flags, message, attributes)
}

func execute(c *netlink.Conn, kind netlink.HeaderType, flags netlink.HeaderFlags, message []byte, attributes *netlink.AttributeEncoder) error {
	encoded, err := attributes.Encode()
	if err != nil {
		return err
	}
	_, err = c.Execute(netlink.Message{
		Header: netlink.Header{Type: kind, Flags: netlink.Request | netlink.Acknowledge | flags},
		Data:   append(message, encoded...),
	})
	return err
}
