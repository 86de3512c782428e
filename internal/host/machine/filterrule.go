package machine

import (
	"bytes"
	"net/netip"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// Where an address and a port stand in a packet, in bytes.
const (
	ipv4Destination = 16
	ipv6Destination = 24
	tcpDestination  = 2
)

// dropExprs is a rule as nft compiles
// "ip daddr ADDRESS tcp dport PORT drop" for a table of family inet.
func dropExprs(d host.Drop) []expr.Any {
	family, offset := byte(unix.NFPROTO_IPV4), uint32(ipv4Destination)
	if d.To.Is6() {
		family, offset = unix.NFPROTO_IPV6, ipv6Destination
	}
	address := d.To.AsSlice()
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		equals([]byte{family}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(len(address))},
		equals(address),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		equals([]byte{unix.IPPROTO_TCP}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: tcpDestination, Len: 2},
		equals(binaryutil.BigEndian.PutUint16(d.TCPPort)),
		&expr.Verdict{Kind: expr.VerdictDrop},
	}
}

func equals(data []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

// readDrop undoes dropExprs; ok is false for every other rule.
func readDrop(exprs []expr.Any) (d host.Drop, ok bool) {
	address, isAddress := operand(exprs, 3)
	port, isPort := operand(exprs, 7)
	if !isAddress || !isPort || len(port) != 2 {
		return d, false
	}
	if d.To, ok = netip.AddrFromSlice(address); !ok {
		return d, false
	}
	d.TCPPort = binaryutil.BigEndian.Uint16(port)
	return d, sameRule(exprs, dropExprs(d))
}

// operand is what the expression at an index compares with.
func operand(exprs []expr.Any, at int) ([]byte, bool) {
	if at >= len(exprs) {
		return nil, false
	}
	c, ok := exprs[at].(*expr.Cmp)
	if !ok {
		return nil, false
	}
	return c.Data, true
}

// sameRule compares two rules as they are told to the kernel.
func sameRule(a, b []expr.Any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, errX := expr.Marshal(unix.NFPROTO_INET, a[i])
		y, errY := expr.Marshal(unix.NFPROTO_INET, b[i])
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			return false
		}
	}
	return true
}
