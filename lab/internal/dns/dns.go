// Package dns is the lab's name server: the addresses of a hosts file and
// NXDOMAIN for everything else.
package dns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"golang.org/x/net/dns/dnsmessage"
)

// Lookup returns the addresses of a lower-case name without its trailing dot
// and whether the name exists.
type Lookup func(name string) ([]netip.Addr, bool)

// Serve answers datagrams until conn is closed.
func Serve(conn net.PacketConn, lookup Lookup) error {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read DNS query: %w", err)
		}
		// A peer that went away is no error of the server's.
		if reply, err := answer(buf[:n], lookup); err == nil {
			_, _ = conn.WriteTo(reply, from)
		}
	}
}

// ServeStream answers over TCP until l is closed.
func ServeStream(l net.Listener, lookup Lookup) error {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept DNS connection: %w", err)
		}
		go serveConn(conn, lookup)
	}
}

func serveConn(conn net.Conn, lookup Lookup) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply, err := answer(query, lookup)
		if err != nil {
			return
		}
		frame := binary.BigEndian.AppendUint16(nil, uint16(len(reply)))
		if _, err := conn.Write(append(frame, reply...)); err != nil {
			return
		}
	}
}

// answer builds the reply to one query.
func answer(query []byte, lookup Lookup) ([]byte, error) {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return nil, fmt.Errorf("parse DNS header: %w", err)
	}
	q, err := p.Question()
	if err != nil {
		return nil, fmt.Errorf("parse DNS question: %w", err)
	}
	addrs, ok := lookup(normal(q.Name.String()))
	head := dnsmessage.Header{ID: h.ID, Response: true, Authoritative: true, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
	if !ok {
		head.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, head)
	if err := errors.Join(b.StartQuestions(), b.Question(q), b.StartAnswers()); err != nil {
		return nil, fmt.Errorf("build DNS reply: %w", err)
	}
	for _, a := range addrs {
		if err := add(&b, q, a); err != nil {
			return nil, fmt.Errorf("build DNS answer: %w", err)
		}
	}
	return b.Finish()
}

func add(b *dnsmessage.Builder, q dnsmessage.Question, a netip.Addr) error {
	h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1}
	switch {
	case a.Is4() && q.Type == dnsmessage.TypeA:
		return b.AResource(h, dnsmessage.AResource{A: a.As4()})
	case a.Is6() && q.Type == dnsmessage.TypeAAAA:
		return b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: a.As16()})
	}
	return nil
}
