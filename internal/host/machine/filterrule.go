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
	portDestination = 2
)

// dropExprs is a rule as nft compiles
// "ip daddr ADDRESS tcp dport PORT drop" for a table of family inet.
func dropExprs(d host.Drop) []expr.Any {
	return append(matchExprs(d.To, unix.IPPROTO_TCP, d.TCPPort), &expr.Verdict{Kind: expr.VerdictDrop})
}

// untrackedExprs is "ip daddr ADDRESS PROTOCOL dport PORT notrack".
func untrackedExprs(u host.Untracked) []expr.Any {
	return append(matchExprs(u.To, protocols[u.Protocol], u.Port), &expr.Notrack{})
}

var protocols = map[string]byte{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP}

func matchExprs(to netip.Addr, protocol byte, port uint16) []expr.Any {
	family, offset := byte(unix.NFPROTO_IPV4), uint32(ipv4Destination)
	if to.Is6() {
		family, offset = unix.NFPROTO_IPV6, ipv6Destination
	}
	address := to.AsSlice()
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		equals([]byte{family}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(len(address))},
		equals(address),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		equals([]byte{protocol}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: portDestination, Len: 2},
		equals(binaryutil.BigEndian.PutUint16(port)),
	}
}

func equals(data []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

// readDrop undoes dropExprs; ok is false for every other rule.
func readDrop(exprs []expr.Any) (d host.Drop, ok bool) {
	d.To, _, d.TCPPort, ok = readMatch(exprs)
	return d, ok && sameRule(exprs, dropExprs(d))
}

// readUntracked undoes untrackedExprs.
func readUntracked(exprs []expr.Any) (u host.Untracked, ok bool) {
	to, protocol, port, ok := readMatch(exprs)
	u.To, u.Port, u.Protocol = to, port, map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}[protocol]
	return u, ok && sameRule(exprs, untrackedExprs(u))
}

// readMatch undoes matchExprs as far as it must: callers compare the whole.
func readMatch(exprs []expr.Any) (to netip.Addr, protocol byte, port uint16, ok bool) {
	address, isAddress := operand(exprs, 3)
	number, isProtocol := operand(exprs, 5)
	at, isPort := operand(exprs, 7)
	if !isAddress || !isProtocol || !isPort || len(number) != 1 || len(at) != 2 {
		return to, 0, 0, false
	}
	to, ok = netip.AddrFromSlice(address)
	return to, number[0], binaryutil.BigEndian.Uint16(at), ok
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
