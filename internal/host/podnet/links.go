package podnet

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// link is an interface. master is the index of the bridge that it is plugged into.
type link struct {
	index, master uint32
	name          string
}

// removeLinks deletes the bridges, what is plugged into them first: it would stay
// without its bridge.
func removeLinks(kept []string) (removed []string, err error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return nil, named("open the network", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	all, err := listLinks(c)
	if err != nil {
		return nil, named("list interfaces", err)
	}
	goes := map[uint32]bool{}
	for _, l := range all {
		goes[l.index] = IsBridge(l.name) && !slices.Contains(kept, l.name)
	}
	plugged := func(l link) bool { return l.master != 0 && goes[l.master] }
	var errs []error
	for _, first := range []bool{true, false} {
		for _, l := range all {
			if plugged(l) != first || !first && !goes[l.index] {
				continue
			}
			if err := deleteLink(c, l.index); err != nil {
				errs = append(errs, named("delete interface "+l.name, err))
				continue
			}
			removed = append(removed, "interface "+l.name)
		}
	}
	return removed, errors.Join(errs...)
}

func listLinks(c *netlink.Conn) ([]link, error) {
	messages, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.RTM_GETLINK, Flags: netlink.Request | netlink.Dump},
		Data:   linkMessage(0),
	})
	if err != nil {
		return nil, err
	}
	var all []link
	for _, m := range messages {
		if len(m.Data) < unix.SizeofIfInfomsg {
			continue
		}
		l := link{index: binary.NativeEndian.Uint32(m.Data[4:])}
		attributes, err := netlink.NewAttributeDecoder(m.Data[unix.SizeofIfInfomsg:])
		if err != nil {
			return nil, err
		}
		for attributes.Next() {
			switch attributes.Type() {
			case unix.IFLA_IFNAME:
				l.name = attributes.String()
			case unix.IFLA_MASTER:
				l.master = attributes.Uint32()
			}
		}
		if err := attributes.Err(); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// deleteLink deletes an interface; one that has gone is no error.
func deleteLink(c *netlink.Conn, index uint32) error {
	_, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.RTM_DELLINK, Flags: netlink.Request | netlink.Acknowledge},
		Data:   linkMessage(index),
	})
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// linkMessage is a struct ifinfomsg that names a link by its index alone.
func linkMessage(index uint32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], index)
	return b
}
