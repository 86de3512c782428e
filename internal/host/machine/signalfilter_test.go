package machine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

// wireSignal is a signal as it comes from the wire.
func wireSignal(tb testing.TB, order binary.ByteOrder, path dbus.ObjectPath, iface, member string, body ...any) []byte {
	tb.Helper()
	m := &dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(path), dbus.FieldInterface: dbus.MakeVariant(iface), dbus.FieldMember: dbus.MakeVariant(member),
	}}
	if len(body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	return wireMessage(tb, m, order)
}

func wireMessage(tb testing.TB, m *dbus.Message, order binary.ByteOrder) []byte {
	tb.Helper()
	var wire bytes.Buffer
	if err := m.EncodeTo(&wire, order); err != nil {
		tb.Fatal(err)
	}
	return wire.Bytes()
}

func changedProps(active string) []any {
	return []any{unitIface, map[string]dbus.Variant{"ActiveState": dbus.MakeVariant(active)}, []string{}}
}

// filtered are the messages that come through, of a stream that comes in pieces.
func filtered(tb testing.TB, stream []byte, pieces func(io.Reader) io.Reader) (out, changed []string) {
	tb.Helper()
	by := &ears{hears: objectOf("a.service")}
	s := newSignalFilter(readFrom{pieces(bytes.NewReader(stream))}, by)
	line := make([]byte, 100)
	n, err := s.Read(line)
	if err != nil || !strings.HasPrefix("OK 1234\r\n", string(line[:n])) {
		tb.Fatalf("authentication: %q, %v", line[:n], err)
	}
	if _, err := io.ReadFull(s, line[n:len("OK 1234\r\n")]); err != nil {
		tb.Fatal(err)
	}
	for {
		m, err := dbus.DecodeMessage(s)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				tb.Fatal(err)
			}
			return out, by.changed
		}
		out = append(out, fmt.Sprint(m.Headers[dbus.FieldMember].Value(), " ", m.Headers[dbus.FieldPath].Value(), " ", m.Body))
	}
}

// ears hear of one object, and note which have changed.
type ears struct {
	hears   dbus.ObjectPath
	changed []string
}

func (e *ears) heard(p dbus.ObjectPath) bool { return p == e.hears }
func (e *ears) outdate(p dbus.ObjectPath)    { e.changed = append(e.changed, string(p)) }

// readFrom is a connection that is only read.
type readFrom struct{ io.Reader }

func (readFrom) Write(p []byte) (int, error) { return len(p), nil }
func (readFrom) Close() error                { return nil }

// TestSignalFilter: changes of units that somebody hears of come through, and whatever else a
// message is, byte by byte and all at once, in both byte orders.
func TestSignalFilter(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		heard, other := objectOf("a.service"), objectOf("b.service")
		service := []any{typeIface + "Service", map[string]dbus.Variant{"MainPID": dbus.MakeVariant(uint32(7))}, []string{}}
		long := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldPath:      dbus.MakeVariant(dbus.ObjectPath("/" + strings.Repeat("x", 2*filterBuffer))),
			dbus.FieldInterface: dbus.MakeVariant("a.b"), dbus.FieldMember: dbus.MakeVariant("Long"),
		}}
		answer := &dbus.Message{Type: dbus.TypeMethodReply, Body: []any{strings.Repeat("y", 3*filterBuffer)}, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldReplySerial: dbus.MakeVariant(uint32(1)), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf("")),
		}}
		stream := slices.Concat([]byte("OK 1234\r\n"),
			wireSignal(t, order, other, properties, "PropertiesChanged", changedProps("active")...),
			wireSignal(t, order, heard, properties, "PropertiesChanged", changedProps("active")...),
			wireSignal(t, order, heard, properties, "PropertiesChanged", service...),
			wireMessage(t, answer, order),
			wireSignal(t, order, managerPath, managerIface, "UnitNew", "a.service", heard),
			wireSignal(t, order, managerPath, managerIface, "JobNew", uint32(1), dbus.ObjectPath("/j/1"), "a.service"),
			wireSignal(t, order, managerPath, managerIface, "JobRemoved", uint32(1), dbus.ObjectPath("/j/1"), "a.service", "done"),
			wireMessage(t, long, order),
			wireSignal(t, order, managerPath, managerIface, "UnitRemoved", "b.service", other),
			wireSignal(t, order, managerPath, managerIface, "Reloading", false),
			wireSignal(t, order, other, "other.iface", "PropertiesChanged"),
		)
		want := []string{
			fmt.Sprint("PropertiesChanged ", heard, " ", changedProps("active")), fmt.Sprint("<nil> <nil> ", answer.Body),
			"JobRemoved " + managerPath + " [1 /j/1 a.service done]", "Long " + fmt.Sprint(long.Headers[dbus.FieldPath].Value()) + " []",
			"Reloading " + managerPath + " [false]", fmt.Sprint("PropertiesChanged ", other, " []"),
		}
		for name, pieces := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader} {
			got, changed := filtered(t, stream, pieces)
			if diff := cmp.Diff([]string{string(other), string(heard), string(heard), "", "", "", "", ""}, changed); diff != "" {
				t.Errorf("%v, %s: what has changed (-want +got):\n%s", order, name, diff)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v, %s: %d messages, want %d", order, name, len(got), len(want))
				for _, m := range got {
					t.Logf("%.200s", m)
				}
			}
		}
	}
}

// FuzzSignalFilter: whatever a whole message says, the one after it comes through; and bytes
// that are no message end in an error.
func FuzzSignalFilter(f *testing.F) {
	f.Add([]byte("OK 1234\r\n"), "/org/freedesktop/systemd1/unit/b_2eservice", properties, "PropertiesChanged", unitIface)
	f.Add([]byte("l\x04\x000A\x00\x00\x000000x\x00\x00\x00\x01\x01o"), managerPath, managerIface, "UnitNew", "a.service")
	f.Add([]byte("B\x04\xff"), "/a", "a.b", "C", "")
	f.Fuzz(func(t *testing.T, b []byte, path, iface, member, of string) {
		nobody := &ears{}
		_, _ = io.Copy(io.Discard, newSignalFilter(readFrom{bytes.NewReader(b)}, nobody))

		m := &dbus.Message{Type: dbus.TypeSignal, Body: []any{of, b}, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath(path)), dbus.FieldInterface: dbus.MakeVariant(iface), dbus.FieldMember: dbus.MakeVariant(member),
			dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(of, b)),
		}}
		var wire bytes.Buffer
		if m.EncodeTo(&wire, binary.LittleEndian) != nil {
			return // no message
		}
		wire.Write(wireSignal(t, binary.LittleEndian, managerPath, managerIface, "Reloading", true))
		s := newSignalFilter(readFrom{&wire}, nobody)
		for {
			m, err := dbus.DecodeMessage(s)
			if err != nil {
				t.Fatal(err)
			}
			if m.Headers[dbus.FieldMember].Value() == "Reloading" {
				return
			}
		}
	})
}
