package machine

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"

	"github.com/godbus/dbus/v5"
)

// signalFilter is a connection to systemd without the signals that nobody hears. To each
// connection of its own systemd sends all that it has to say of any unit, a dozen
// signals for one start, whatever was asked for; to decode them takes longer than
// the start. What a message consists of: the D-Bus specification, "Message Format".
type signalFilter struct {
	io.ReadWriteCloser
	in *bufio.Reader
	by hearer
	// left is how much of what is being read comes before the next message.
	left int
}

// hearer is who hears.
type hearer interface {
	// heard says whether changes of an object are heard.
	heard(dbus.ObjectPath) bool
	// outdate is told of each object that has changed, heard or not; "" is any.
	outdate(dbus.ObjectPath)
}

// filterBuffer holds more than the header of a message of systemd's, and many messages
// that come at once.
const filterBuffer = 16 << 10

func newSignalFilter(c io.ReadWriteCloser, by hearer) *signalFilter {
	return &signalFilter{ReadWriteCloser: c, in: bufio.NewReaderSize(c, filterBuffer), by: by}
}

// Read implements io.Reader.
func (s *signalFilter) Read(p []byte) (int, error) {
	for s.left == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n, err := s.in.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// next looks at what comes: a message, or a line of the authentication, which is
// before all messages.
func (s *signalFilter) next() error {
	first, err := s.in.Peek(1)
	if err != nil {
		return err
	}
	if first[0] != 'l' && first[0] != 'B' { // lines begin with OK, REJECTED, DATA, ERROR or AGREE_UNIX_FD
		line, err := s.in.Peek(s.in.Buffered())
		if s.left = len(line); bytes.IndexByte(line, '\n') >= 0 {
			s.left = bytes.IndexByte(line, '\n') + 1
		}
		return err
	}
	start, err := s.in.Peek(fixedHeader)
	if err != nil {
		return err
	}
	h := header{order: orderOf(start), end: fixedHeader}
	h.end += int(h.order.Uint32(start[12:]))
	h.body = (h.end + 7) &^ 7
	size := h.body + int(h.order.Uint32(start[4:]))
	switch {
	case dbus.Type(start[1]) != dbus.TypeSignal:
	case h.body > filterBuffer-nameRoom: // none of systemd's
		s.by.outdate("")
	default:
		m, err := s.in.Peek(min(size, h.body+nameRoom))
		if err != nil {
			return err
		}
		if h.read(m); s.drops(h, m[h.body:]) {
			_, err := s.in.Discard(size)
			return err
		}
	}
	s.left = size
	return nil
}

// nameRoom has room for the name of an interface at the beginning of a body.
const nameRoom = 4 + len(unitIface) + 1

// drops says whether nobody hears a signal, of whose body it has the beginning.
func (s *signalFilter) drops(h header, body []byte) bool {
	path := dbus.ObjectPath(h.fields[dbus.FieldPath])
	switch h.fields[dbus.FieldInterface] + "." + h.fields[dbus.FieldMember] {
	case managerIface + ".JobNew":
		return true
	case managerIface + ".JobRemoved":
		return false
	case properties + ".PropertiesChanged":
		s.by.outdate(path)
		of, _, ok := text(body, 0, h.order)
		return !ok || of != unitIface || !s.by.heard(path)
	case managerIface + ".UnitNew", managerIface + ".UnitRemoved": // what comes or goes depends on others
		s.by.outdate("")
		return true
	}
	s.by.outdate("")
	return false
}

// fixedHeader is the part of a message that is of one size, with the length of the
// fields that follow.
const fixedHeader = 16

// header is that of a message: the fields end at end, the body begins at body.
type header struct {
	order     binary.ByteOrder
	end, body int
	fields    map[dbus.HeaderField]string
}

func orderOf(start []byte) binary.ByteOrder {
	if start[0] == 'B' {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// read reads the fields of a message as far as they are strings and paths, which all of
// a signal's are but the signature: what it does not understand it leaves out.
func (h *header) read(m []byte) {
	h.fields = map[dbus.HeaderField]string{}
	for at := fixedHeader; at < h.end; {
		at = (at + 7) &^ 7
		if at+4 > min(h.end, len(m)) || m[at+1] != 1 || m[at+3] != 0 { // each is (yv), its type has one letter
			return
		}
		field, kind := dbus.HeaderField(m[at]), m[at+2]
		at += 4
		switch kind {
		case 's', 'o':
			value, end, ok := text(m, at, h.order)
			if !ok {
				return
			}
			h.fields[field], at = value, end
		case 'g':
			if at >= len(m) {
				return
			}
			at += 1 + int(m[at]) + 1
		case 'u':
			at += 4
		default:
			return
		}
	}
}

// text is the string at an offset, which is a multiple of four, and where it ends.
func text(m []byte, at int, order binary.ByteOrder) (value string, end int, ok bool) {
	if at+4 > len(m) {
		return "", 0, false
	}
	size := int(order.Uint32(m[at:]))
	at += 4
	if size < 0 || size >= len(m)-at {
		return "", 0, false
	}
	return string(m[at : at+size]), at + size + 1, true
}
