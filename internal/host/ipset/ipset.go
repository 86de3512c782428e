// Package ipset lists the kernel's ipsets.
package ipset

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host/kernelmodule"
)

// What the kernel is asked for names with.
//
// Source: include/uapi/linux/netfilter/ipset/ip_set.h.
const (
	list      = 6<<8 | 7 // NFNL_SUBSYS_IPSET, IPSET_CMD_LIST
	protocol  = 1        // IPSET_ATTR_PROTOCOL
	setName   = 2        // IPSET_ATTR_SETNAME
	flags     = 6        // IPSET_ATTR_FLAGS
	namesOnly = 2        // IPSET_FLAG_LIST_SETNAME
	version   = 6
)

// Names are those of all ipsets, of the network namespace that the program runs in. A
// kernel without ipsets has none. Where the machine says that they are not loaded, nobody
// asks: that would load them.
func Names() (names []string, err error) {
	if there, err := kernelmodule.Loaded("/", "ip_set"); err == nil && !there {
		return nil, nil
	}
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if kernelmodule.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the packet filter: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	question, err := question()
	if err != nil {
		return nil, fmt.Errorf("ask for ipsets: %w", err)
	}
	sets, err := c.Execute(question)
	if kernelmodule.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ipsets: %w", err)
	}
	for _, m := range sets {
		if name := nameIn(m.Data); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

func question() (netlink.Message, error) {
	e := netlink.NewAttributeEncoder()
	e.Uint8(protocol, version)
	e.Bytes(flags|unix.NLA_F_NET_BYTEORDER, binary.BigEndian.AppendUint32(nil, namesOnly))
	attributes, err := e.Encode()
	return netlink.Message{
		Header: netlink.Header{Type: list, Flags: netlink.Request | netlink.Dump},
		Data:   append([]byte{unix.AF_INET, 0, 0, 0}, attributes...), // struct nfgenmsg
	}, err
}

// nameIn is the name in an answer; "" for one that has none.
func nameIn(data []byte) string {
	if len(data) < 4 {
		return ""
	}
	d, err := netlink.NewAttributeDecoder(data[4:])
	if err != nil {
		return ""
	}
	for d.Next() {
		if d.Type() == setName {
			return d.String()
		}
	}
	return ""
}
